// Hot reload: precedence of files, last good rules, a file in the middle of being written.
import type { Logger } from "@flotilla/telemetry";
import { beforeEach, describe, expect, it } from "vitest";
import { createRulesSource, type FileRead, type RulesSource } from "./rules-source.ts";

const home = "/home/permissions.yaml";
const shipped = "/shipped/permissions.yaml";
const good = "rules: [demo::echo]";
const broken = "rules: [{function: demo::echo}]";

let files: Map<string, FileRead>;
let outcomes: string[];
let logged: string[];

function recordingLogger(): Logger {
  const record = (level: string) => (message: string) => {
    logged.push(`${level}: ${message}`);
  };
  const logger: Logger = {
    trace: record("trace"),
    debug: record("debug"),
    info: record("info"),
    warn: record("warn"),
    error: record("error"),
    with: () => logger,
  };
  return logger;
}

function aSource(paths: string[] = [home, shipped]): RulesSource {
  return createRulesSource({
    paths,
    read: async (path) => files.get(path) ?? { kind: "missing" },
    logger: recordingLogger(),
    onOutcome: (outcome) => outcomes.push(outcome),
  });
}

const write = (path: string, text: string): void => {
  files.set(path, { kind: "text", text });
};
const patternsOf = (source: RulesSource): string[] | null => source.rules()?.map((rule) => rule.pattern) ?? null;
const pollTwice = async (source: RulesSource): Promise<void> => {
  await source.poll();
  await source.poll();
};

beforeEach(() => {
  files = new Map();
  outcomes = [];
  logged = [];
});

describe("precedence", () => {
  it("takes the first file that exists, at once at the start", async () => {
    write(shipped, "rules: [a::b]");
    write(home, "rules: [c::d]");
    const source = aSource();
    await source.poll();
    expect(patternsOf(source)).toEqual(["c::d"]);
    expect(source.problem()).toBeNull();
  });

  it("follows the home file as it appears, changes and goes away", async () => {
    write(shipped, "rules: [a::b]");
    const source = aSource();
    await source.poll();
    expect(patternsOf(source)).toEqual(["a::b"]);
    write(home, "rules: [c::d]");
    await pollTwice(source);
    expect(patternsOf(source)).toEqual(["c::d"]);
    write(home, "rules: [e::f]");
    await pollTwice(source);
    expect(patternsOf(source)).toEqual(["e::f"]);
    files.delete(home);
    await pollTwice(source);
    expect(patternsOf(source)).toEqual(["a::b"]);
    expect(outcomes).toEqual(["loaded", "loaded", "loaded", "loaded"]);
  });
});

describe("a change counts once it was seen twice", () => {
  it("ignores a file that is half written, and a gap while it is replaced", async () => {
    write(shipped, "rules: ['*']");
    write(home, "rules: ['!demo::refund', 'demo::*']");
    const source = aSource();
    await source.poll();
    write(home, "");
    await source.poll();
    files.delete(home);
    await source.poll();
    expect(patternsOf(source)).toEqual(["demo::refund", "demo::*"]);
    write(home, "rules: ['!demo::refund']");
    await pollTwice(source);
    expect(patternsOf(source)).toEqual(["demo::refund"]);
    expect(outcomes).toEqual(["loaded", "loaded"]);
  });
});

describe("a file that is not usable", () => {
  it("keeps the last good rules, says so once, and recovers", async () => {
    write(home, good);
    const source = aSource();
    await source.poll();
    write(home, broken);
    await pollTwice(source);
    await pollTwice(source);
    expect(patternsOf(source)).toEqual(["demo::echo"]);
    expect(source.problem()).toBe(`${home}: rule 0: action must be one of allow, deny, needs_approval`);
    expect(outcomes).toEqual(["loaded", "rejected"]);
    expect(logged.filter((line) => line.startsWith("error"))).toHaveLength(1);
    write(home, good);
    await pollTwice(source);
    expect(source.problem()).toBeNull();
    expect(outcomes).toEqual(["loaded", "rejected", "loaded"]);
  });

  it.each<[string, FileRead | undefined]>([
    ["broken", { kind: "text", text: broken }],
    ["unreadable", { kind: "unreadable", message: "the file cannot be read (EACCES)" }],
    ["absent", undefined],
  ])(
    "has no rules when the file is %s at the start, not those of another file, until it is repaired",
    async (_, file) => {
      write(shipped, "rules: ['*']");
      if (file !== undefined) files.set(home, file);
      const source = aSource([home]);
      await source.poll();
      expect(patternsOf(source)).toBeNull();
      expect(source.problem()).toContain(home);
      write(home, good);
      await pollTwice(source);
      expect(patternsOf(source)).toEqual(["demo::echo"]);
      expect(source.problem()).toBeNull();
    },
  );

  it("does not fall back to the shipped file when the home file is broken at the start (I8)", async () => {
    write(shipped, "rules: ['*']");
    write(home, broken);
    const source = aSource();
    await source.poll();
    expect(patternsOf(source)).toBeNull();
  });

  it("warns of rules that look wrong and takes them", async () => {
    write(home, "rules: [a::b, '!a::b']");
    const source = aSource();
    await source.poll();
    expect(patternsOf(source)).toEqual(["a::b", "a::b"]);
    expect(logged).toContain("warn: a permission rule looks wrong");
  });
});
