// Behaviour of loadConfig and its fields.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { FlotillaError } from "@flotilla/errors";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { flag, integer, list, loadConfig, milliseconds, port, Secret, secret } from "./index.ts";

const Config = z.object({
  THING_URL: z.url(),
  THING_TIMEOUT_MS: milliseconds(5_000, { min: 1 }),
  THING_PORT: port().optional(),
  THING_TAGS: list(["a"]),
  THING_LOUD: flag(),
  THING_MODE: z.enum(["fast", "safe"]).default("fast"),
  THING_KEY: secret().optional(),
});

function problemsOf(run: () => unknown): string[] {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(FlotillaError);
    expect((error as FlotillaError).code).toBe("CONFIG_INVALID");
    return (error as FlotillaError).message.split("\n");
  }
  throw new Error("expected a refusal");
}

describe("loadConfig", () => {
  it("fills defaults, parses units and freezes the result", () => {
    const config = loadConfig(Config, {
      THING_URL: "http://x.test",
      THING_PORT: "80",
      THING_TAGS: "b, c,,",
      THING_LOUD: "true",
    });
    expect(config).toEqual({
      THING_URL: "http://x.test",
      THING_TIMEOUT_MS: 5_000,
      THING_PORT: 80,
      THING_TAGS: ["b", "c"],
      THING_LOUD: true,
      THING_MODE: "fast",
    });
    expect(Object.isFrozen(config)).toBe(true);
  });

  it("reports every problem at once with the variable's name and never a value", () => {
    const lines = problemsOf(() =>
      loadConfig(Config, {
        THING_TIMEOUT_MS: "hunter2",
        THING_PORT: "99999",
        THING_LOUD: "hunter2",
        THING_MODE: "hunter2",
      }),
    );
    expect(lines).toEqual([
      "THING_URL: is required",
      "THING_TIMEOUT_MS: must be a whole number, at least 1",
      "THING_PORT: must be a whole number, from 0 to 65535",
      "THING_LOUD: must be true or false",
      'THING_MODE: Invalid option: expected one of "fast"|"safe"',
    ]);
    expect(lines.join()).not.toContain("hunter2");
  });

  it("takes an empty variable for unset, and can express zero and false", () => {
    const config = loadConfig(z.object({ A_MS: milliseconds(7), B: integer(), C: flag(true) }), {
      A_MS: "",
      B: "0",
      C: "false",
    });
    expect(config).toEqual({ A_MS: 7, B: 0, C: false });
  });

  it("reads X_FILE, and reads a secret's file again on every use", () => {
    const path = join(mkdtempSync(join(tmpdir(), "config-")), "key");
    writeFileSync(path, "first\n");
    const config = loadConfig(Config, { THING_URL: "http://x.test", THING_KEY_FILE: path });
    expect(config.THING_KEY?.reveal()).toBe("first");
    writeFileSync(path, "second\n");
    expect(config.THING_KEY?.reveal()).toBe("second");
  });

  it("refuses an unreadable file, and a value together with a file", () => {
    const env = {
      THING_URL: "http://x.test",
      THING_MODE: "safe",
      THING_MODE_FILE: "/nowhere",
      THING_KEY_FILE: "/nowhere",
    };
    expect(problemsOf(() => loadConfig(Config, env))).toEqual([
      "THING_MODE: set either THING_MODE or THING_MODE_FILE, not both",
      "THING_KEY_FILE: the file cannot be read (ENOENT)",
    ]);
  });
});

describe("Secret", () => {
  it("prints, inspects and serialises as redacted (I13)", () => {
    const value = Secret.of("hunter2");
    expect(`${value} ${inspect({ value })} ${JSON.stringify({ value })}`).not.toContain("hunter2");
    expect(value.reveal()).toBe("hunter2");
  });
});
