// Behaviour of the logger: what a line holds and what it never holds.
import { describe, expect, it } from "vitest";
import { createLogger, type LogLevel } from "./logger.ts";

function recordLogs(level: LogLevel = "trace") {
  const lines: string[] = [];
  const logger = createLogger({ level, name: "w", destination: { write: (line) => lines.push(line) }, now: () => 0 });
  return { logger, lines, records: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

describe("createLogger", () => {
  it("writes one JSON line per record with time, level, name, message and the bound data", () => {
    const { logger, lines, records } = recordLogs();
    logger.with({ function: "a::b" }).info("the call ended", { duration_ms: 3, message: "not this" });
    expect(lines).toHaveLength(1);
    expect(lines[0]?.endsWith("}\n")).toBe(true);
    expect(records()[0]).toEqual({
      function: "a::b",
      duration_ms: 3,
      time: "1970-01-01T00:00:00.000Z",
      level: "info",
      name: "w",
      message: "the call ended",
    });
  });

  it("drops records below its level, and all of them when silent", () => {
    const warn = recordLogs("warn");
    warn.logger.info("no");
    warn.logger.warn("yes");
    expect(warn.records().map((record) => record.message)).toEqual(["yes"]);
    const silent = recordLogs("silent");
    silent.logger.error("no");
    expect(silent.lines).toEqual([]);
  });

  it("masks secret-like keys at any depth and logins inside text (I13)", () => {
    const { logger, lines, records } = recordLogs();
    logger.info("calling nats://user:hunter2@bus:4222 with Bearer hunter2", {
      apiKey: "hunter2",
      nested: [
        { Authorization: "hunter2", session_token: "hunter2", "x-api-key": "hunter2", client_secret: "hunter2" },
      ],
      error: new Error("Authorization: Bearer hunter2", { cause: { password: "hunter2" } }),
      url: "https://u:hunter2@host/path",
    });
    expect(lines.join()).not.toContain("hunter2");
    expect(records()[0]?.url).toBe("https://[REDACTED]@host/path");
  });

  it("leaves keys that only look similar as they are", () => {
    const { logger, records } = recordLogs();
    logger.info("counted", { tokens: 5, tokenizer: "x", max_tokens: 7 });
    expect(records()[0]).toMatchObject({ tokens: 5, tokenizer: "x", max_tokens: 7 });
  });

  it("never throws: cycles, big numbers, bytes, broken toJSON", () => {
    const { logger, records } = recordLogs();
    const cycle: Record<string, unknown> = { big: 1n, bytes: new Uint8Array(3), map: new Map([["a", 1]]) };
    cycle.self = cycle;
    const broken = {
      toJSON() {
        throw new Error("no");
      },
    };
    logger.error("odd", { cycle, broken });
    expect(records()[0]).toMatchObject({
      cycle: { big: "1", bytes: "[3 bytes]", map: { a: 1 }, self: "[circular]" },
      broken: "[unreadable]",
    });
  });
});
