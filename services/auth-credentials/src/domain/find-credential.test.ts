import { Secret } from "@flotilla/config";
import { describe, expect, it } from "vitest";
import { configuredProviders, findCredential } from "./find-credential.ts";
import { parseStore } from "./parse-store.ts";

function sources(stored: Record<string, string>, environment: Record<string, string>) {
  const parsed = parseStore(JSON.stringify(stored));
  if (!parsed.ok) throw new Error(parsed.problem);
  const secrets = Object.entries(environment).map(([name, value]) => [name, Secret.of(value)] as const);
  return { stored: parsed.stored, environment: new Map(secrets) };
}

describe("where a credential comes from", () => {
  it("is the file before the environment", () => {
    const both = sources({ openai: "from-file" }, { OPENAI_API_KEY: "from-env" });
    const found = findCredential("openai", both);
    expect(found).toMatchObject({ source: "stored" });
    expect(found?.reveal()).toEqual({ type: "api_key", key: "from-file" });
  });

  it.each([
    ["openai-codex", "OPENAI_API_KEY"],
    ["kimi", "MOONSHOT_API_KEY"],
    ["kimi-coding", "MOONSHOT_API_KEY"],
    ["huggingface", "HF_TOKEN"],
    ["lmstudio", "LMSTUDIO_API_KEY"],
  ])("for %s is the variable %s", (provider, variable) => {
    const found = findCredential(provider, sources({}, { [variable]: "k" }));
    expect(found).toMatchObject({ source: "environment", label: variable });
    expect(found?.reveal()).toEqual({ type: "api_key", key: "k" });
  });

  it("for lmstudio is a stand-in when nobody configured one", () => {
    expect(findCredential("lmstudio", sources({}, {}))?.reveal()).toEqual({ type: "api_key", key: "lm-studio" });
    expect(configuredProviders(sources({}, {}))).toEqual([]);
  });

  it.each(["nobody", "toString", "__proto__", ""])("is nowhere for %j", (provider) => {
    expect(findCredential(provider, sources({}, { OPENAI_API_KEY: "k" }))).toBeNull();
  });

  it("lists every provider that one is configured for", () => {
    const some = sources({ zai: "a", mine: "b" }, { MOONSHOT_API_KEY: "k", ZAI_API_KEY: "k" });
    expect(configuredProviders(some)).toEqual(["kimi", "kimi-coding", "mine", "zai"]);
  });
});
