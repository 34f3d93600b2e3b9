import { chmod, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger } from "@flotilla/telemetry";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { credentialOf } from "../domain/parse-store.ts";
import { createCredentialsFile } from "./credentials-file.ts";

let folder: string;
let path: string;
let lines: string[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "flotilla-credentials-"));
  path = join(folder, "credentials.json");
  lines = [];
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const open = (isRequired = false) => {
  const logger = createLogger({
    level: "trace",
    name: "test",
    destination: { write: (line: string) => lines.push(line) },
  });
  return createCredentialsFile({ path, isRequired, logger });
};
const write = (text: string): Promise<void> => writeFile(path, text, { mode: 0o600 });

describe("the credentials file", () => {
  it("counts at once when it appears, changes, is replaced and goes away", async () => {
    const file = open();
    const key = () => [...file.read().values()].map(credentialOf);
    expect(key()).toEqual([]);
    await write('{"openai": "one"}');
    expect(key()).toMatchObject([{ key: "one" }]);
    await write('{"openai": "two, longer"}');
    expect(key()).toMatchObject([{ key: "two, longer" }]);
    await writeFile(join(folder, "next"), '{"openai": "three"}', { mode: 0o600 });
    await rename(join(folder, "next"), path);
    expect(key()).toMatchObject([{ key: "three" }]);
    await rm(path);
    expect(key()).toEqual([]);
    expect(file.problem()).toBeNull();
  });

  it("stays as it was when a change does not parse, and says so without quoting it", async () => {
    await write('{"openai": "good"}');
    const file = open();
    file.read();
    await write('{"openai": sk-leaked-by-a-parser}');
    expect(file.read().has("openai")).toBe(true);
    expect(file.problem()).toBe("the credentials file is no JSON; the last good one is in force");
    expect(lines.join("")).toContain("the credentials file cannot be used");
    expect(lines.join("")).not.toContain("sk-leaked");
    await write('{"openai": "good again"}');
    expect(file.problem()).toBeNull();
  });

  it("gives out nothing when it was never good (I8)", async () => {
    await write("{");
    const file = open();
    expect(() => file.read()).toThrow(/is no JSON/);
  });

  it("must be there when the operator named it", async () => {
    const file = open(true);
    expect(() => file.read()).toThrow(/is not there/);
    await write('{"openai": "k"}');
    expect(file.read().size).toBe(1);
    await rm(path);
    expect(() => file.read()).toThrow(/is not there/);
  });

  it("warns when other users can read it", async () => {
    await write("{}");
    open().read();
    expect(lines).toEqual([]);
    await chmod(path, 0o644);
    open().read();
    expect(lines.join("")).toContain("chmod 600");
  });
});
