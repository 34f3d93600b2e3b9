// The Redis server: from PATH, from the system's packages when this user may install them, or (at run time) from Docker.
import { isAtLeast, isDockerRunning, outputOf, SetupError, say, succeeds, versionIn } from "./shell.mjs";

const minimum = [6, 2, 0];

export async function ensureRedisServer() {
  if (await isUsable()) return "PATH";
  if ((await installPackage()) && (await isUsable())) return "PATH";
  if (await isDockerRunning()) {
    say("no redis-server here; it will run in Docker");
    return "Docker";
  }
  throw new SetupError(
    `redis-server ${minimum.slice(0, 2).join(".")} or newer is needed: ${advice()}, or start Docker`,
  );
}

async function isUsable() {
  return isAtLeast(versionIn(await outputOf("redis-server", ["--version"])), minimum);
}

async function installPackage() {
  const prefix = await installerPrefix();
  if (prefix === null) return false;
  say("installing redis-server with apt-get");
  const run = (...args) => {
    const [command, ...rest] = [...prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", ...args];
    return succeeds(command, rest);
  };
  return run("update") && run("install", "-y", "--no-install-recommends", "redis-server");
}

/** How to run apt-get as root without a question, or null. */
async function installerPrefix() {
  if ((await outputOf("apt-get", ["--version"])) === null) return null;
  if (process.getuid?.() === 0) return [];
  return (await outputOf("sudo", ["-n", "true"])) === null ? null : ["sudo", "-n"];
}

function advice() {
  return process.platform === "darwin"
    ? "brew install redis"
    : "install it with your package manager (apt-get install redis-server)";
}
