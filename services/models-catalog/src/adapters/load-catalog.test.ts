import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { costMicrousd } from "@flotilla/contracts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadCatalog } from "./load-catalog.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "flotilla-models-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function override(text: string): Promise<string> {
  const path = join(folder, "models.json");
  await writeFile(path, text);
  return path;
}

describe("the shipped rows", () => {
  const catalog = loadCatalog(undefined);

  it("price the scripted models at 1 and 2 USD per million", () => {
    for (const id of ["play", "demo"]) {
      expect(costMicrousd({ input: 1_000_000, output: 1_000_000 }, catalog.get("scripted", id)?.pricing)).toBe(
        3_000_000,
      );
    }
  });

  it.each([
    [
      "anthropic",
      "claude-fixture-1",
      {
        input_per_1m: 3,
        output_per_1m: 15,
        cache_read_per_1m: 0.3,
        cache_write_per_1m: 3.75,
        cache_write_1h_per_1m: 6,
      },
    ],
    ["openai", "gpt-fixture-1", { input_per_1m: 1.25, output_per_1m: 10, cache_read_per_1m: 0.125 }],
    ["kimi", "kimi-fixture-1", { input_per_1m: 0.6, output_per_1m: 2.5, cache_read_per_1m: 0.15 }],
    ["kimi", "kimi-fixture-thinking", { input_per_1m: 0.6, output_per_1m: 2.5, cache_read_per_1m: 0.15 }],
    ["lmstudio", "local-fixture-1", { input_per_1m: 0, output_per_1m: 0 }],
  ])("hold the fixture model %s/%s with its prices", (provider, id, pricing) => {
    expect(catalog.get(provider, id)?.pricing).toEqual(pricing);
  });

  it("hold the models that a fleet with a key uses when none is named", () => {
    expect(catalog.get("anthropic", "claude-sonnet-4-5")).toMatchObject({
      context_window: 200_000,
      supports_tools: true,
    });
    expect(catalog.get("openai", "gpt-5")).toMatchObject({ pricing: { input_per_1m: 1.25, output_per_1m: 10 } });
  });

  it("are each there once, with sane limits and prices", () => {
    const models = catalog.list({});
    expect(models.length).toBeGreaterThan(40);
    for (const model of models) {
      expect(model.max_output_tokens, model.id).toBeLessThanOrEqual(model.context_window);
      expect(model.pricing?.output_per_1m, model.id).toBeGreaterThanOrEqual(model.pricing?.input_per_1m ?? 0);
      expect(model.pricing?.cache_read_per_1m ?? 0, model.id).toBeLessThanOrEqual(model.pricing?.input_per_1m ?? 0);
    }
  });
});

describe("FLOTILLA_MODELS_FILE", () => {
  it("changes a price and adds a model", async () => {
    const added = {
      id: "mine",
      provider: "lmstudio",
      api: "openai-chat-completions",
      display_name: "Mine",
      context_window: 9,
    };
    const path = await override(
      JSON.stringify({
        models: [{ provider: "openai", id: "gpt-5", pricing: { input_per_1m: 9, output_per_1m: 9 } }, added],
      }),
    );
    const catalog = loadCatalog(path);
    expect(catalog.get("openai", "gpt-5")).toMatchObject({ context_window: 400_000, pricing: { input_per_1m: 9 } });
    expect(catalog.get("lmstudio", "mine")).toEqual(added);
  });

  it.each([
    ["{", /FLOTILLA_MODELS_FILE: is no JSON/],
    ['{"models": [{"id": "x"}]}', /FLOTILLA_MODELS_FILE: .*provider/],
    ['{"models": [{"id": "x", "provider": "y"}]}', /FLOTILLA_MODELS_FILE: .*display_name/],
    ['{"models": [{"id": "gpt-5", "provider": "openai", "contextwindow": 3}]}', /contextwindow/],
  ])("is refused when it holds %s, with the reason", async (text, problem) => {
    const path = await override(text);
    expect(() => loadCatalog(path)).toThrow(problem);
  });

  it("is refused when it is not there", () => {
    expect(() => loadCatalog(join(folder, "absent.json"))).toThrow(
      /FLOTILLA_MODELS_FILE: the file cannot be read \(ENOENT\)/,
    );
  });
});
