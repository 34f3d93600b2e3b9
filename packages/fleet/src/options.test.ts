// Behaviour of what a person may ask of a fleet: workers, replicas, the default model, server programs.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { defaultModel, keyVariables } from "./default-model.ts";
import { parseReplicas } from "./replicas.ts";
import { dockerProgram, isAtLeast } from "./server-program.ts";
import { envOfWorker, workerEnv } from "./worker-env.ts";
import { allWorkers, parseWorkers, repositoryRoot } from "./worker-folders.ts";

const known = ["harness", "policy", "turn-orchestrator"];

describe("parseWorkers", () => {
  it("takes all, or a list without repetitions", () => {
    expect(parseWorkers("all", known)).toEqual(known);
    expect(parseWorkers(" policy, harness,policy ", known)).toEqual(["policy", "harness"]);
  });

  it("names an unknown worker and those there are", () => {
    expect(() => parseWorkers("polcy", known)).toThrow("there is no worker polcy; there are harness, policy");
    expect(() => parseWorkers(" ,", known)).toThrow("names no worker");
  });

  it("knows every service folder that holds a worker, and no other", () => {
    expect(allWorkers()).toEqual(expect.arrayContaining(["harness", "policy", "session", "turn-orchestrator"]));
    expect(allWorkers()).not.toEqual(expect.arrayContaining(["cli"]));
    expect(allWorkers()).not.toEqual(expect.arrayContaining(["composite"]));
  });
});

describe("parseReplicas", () => {
  it("takes any worker, also none of one", () => {
    expect(parseReplicas("turn-orchestrator=2, harness=0", known)).toEqual({ "turn-orchestrator": 2, harness: 0 });
    expect(parseReplicas("", known)).toEqual({});
  });

  it.each(["harness", "harness=", "harness=x", "harness=-1"])("refuses %j", (text) => {
    expect(() => parseReplicas(text, known)).toThrow("is not like turn-orchestrator=2");
  });

  it("refuses an unknown worker", () => {
    expect(() => parseReplicas("harnes=2", known)).toThrow("there is no worker harnes");
  });
});

describe("defaultModel", () => {
  it("is the demo until a key is there", () => {
    expect(defaultModel({})).toEqual({ provider: "scripted", model: "demo" });
    expect(defaultModel({ OPENAI_API_KEY: "" })).toEqual({ provider: "scripted", model: "demo" });
    expect(defaultModel({ ANTHROPIC_API_KEY: "k" }).provider).toBe("anthropic");
    expect(defaultModel({ OPENAI_API_KEY_FILE: "/run/key" }).provider).toBe("openai");
  });

  it("names models that the catalog knows", () => {
    const file = join(repositoryRoot, "services", "models-catalog", "data", "models.json");
    const { models } = JSON.parse(readFileSync(file, "utf8")) as { models: { provider: string; id: string }[] };
    for (const variable of keyVariables) {
      const { provider, model } = defaultModel({ [variable]: "k" });
      expect(models).toContainEqual(expect.objectContaining({ provider, id: model }));
    }
  });

  it("is what the environment names, whatever keys there are", () => {
    const env = { ANTHROPIC_API_KEY: "k", FLOTILLA_DEFAULT_PROVIDER: "scripted", FLOTILLA_DEFAULT_MODEL: "play" };
    expect(defaultModel(env)).toEqual({ provider: "scripted", model: "play" });
    expect(defaultModel({ FLOTILLA_DEFAULT_PROVIDER: "openai" }).provider).toBe("openai");
    expect(defaultModel({ ANTHROPIC_API_KEY: "k", FLOTILLA_DEFAULT_MODEL: "m" })).toEqual({
      provider: "anthropic",
      model: "m",
    });
  });
});

describe("workerEnv", () => {
  const options = {
    env: {},
    home: "/h",
    port: 7440,
    workers: ["harness", "policy"],
    backends: { NATS_URL: "nats://x" },
  };

  it("tells the harness whom to wait for, and bounds the drain", () => {
    expect(workerEnv(options)).toMatchObject({
      FLOTILLA_READY_WORKERS: "policy",
      DRAIN_SECONDS: "3",
      FLOTILLA_HOME: "/h",
    });
  });

  it("leaves the caller's own values, except where the fleet decides", () => {
    const env = { DRAIN_SECONDS: "60", NATS_URL: "nats://other", LOG_LEVEL: "debug" };
    expect(workerEnv({ ...options, env })).toMatchObject({
      DRAIN_SECONDS: "60",
      NATS_URL: "nats://x",
      LOG_LEVEL: "debug",
    });
  });
});

describe("envOfWorker", () => {
  const env = {
    OPENAI_API_KEY: "k",
    ANTHROPIC_API_KEY_FILE: "/k",
    HF_TOKEN: "t",
    OPENAI_BASE_URL: "http://x",
    LOG_LEVEL: "info",
  };

  it("gives keys to the worker that hands them out, and to no other process (I13)", () => {
    expect(envOfWorker("auth-credentials", env)).toEqual(env);
    expect(envOfWorker("provider-openai", env)).toEqual({ OPENAI_BASE_URL: "http://x", LOG_LEVEL: "info" });
  });
});

describe("server programs", () => {
  it("compares versions by number", () => {
    expect(isAtLeast("nats-server: v2.15.1", [2, 12])).toBe(true);
    expect(isAtLeast("nats-server: v2.9.25", [2, 12])).toBe(false);
    expect(isAtLeast("Redis server v=7.0.15 sha=0", [6, 2])).toBe(true);
    expect(isAtLeast("no version", [1, 0])).toBe(false);
    expect(isAtLeast(null, [1, 0])).toBe(false);
  });

  it("runs the same command in a container that is reachable on loopback only and sees the same folder", () => {
    const { command, args } = dockerProgram({
      name: "nats-server",
      minimum: [2, 12],
      image: "nats:x",
      args: ["-c", "/h/nats/nats.conf"],
      openArgs: ["-a", "0.0.0.0"],
      port: 4223,
      folder: "/h/nats",
    });
    expect([command, ...args].join(" ")).toMatch(
      /^docker run --rm --init --name flotilla-nats-server-4223 --user \d+:\d+ -p 127\.0\.0\.1:4223:4223 -v \/h\/nats:\/h\/nats nats:x nats-server -c \/h\/nats\/nats\.conf -a 0\.0\.0\.0$/,
    );
  });
});
