// Brings a clone to the point where the fleet can run: packages, nats-server, redis-server. Plain JavaScript for Node 20,
// because it runs before anything is installed. Says nothing about what is already there.
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureDependencies } from "./setup/dependencies.mjs";
import { ensureNatsServer } from "./setup/nats-server.mjs";
import { ensureRedisServer } from "./setup/redis-server.mjs";
import { SetupError, say } from "./setup/shell.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");

async function main() {
  const major = Number(process.versions.node.split(".")[0]);
  if (major < 20) throw new SetupError(`Node 20 or newer is needed, this is ${process.versions.node}`);
  ensureDependencies(root);
  const [nats, redis] = await Promise.all([ensureNatsServer(root), ensureRedisServer()]);
  if (process.argv.includes("--verbose")) say(`ready: nats-server from ${nats}, redis-server from ${redis}`);
}

main().catch((error) => {
  if (!(error instanceof SetupError)) throw error;
  say(error.message);
  process.exitCode = 1;
});
