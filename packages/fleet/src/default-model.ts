// The model of a turn that names none: the demo until a key is there.
import type { Env } from "@flotilla/config";

export interface DefaultModel {
  readonly provider: string;
  readonly model: string;
}

const demo: DefaultModel = { provider: "scripted", model: "demo" };

/** In order of preference, by the variable that holds the provider's key. */
const byKey: readonly (readonly [string, DefaultModel])[] = [
  ["ANTHROPIC_API_KEY", { provider: "anthropic", model: "claude-sonnet-5-5" }],
  ["OPENAI_API_KEY", { provider: "openai", model: "gpt-6.1-sol" }],
];

export const keyVariables: readonly string[] = byKey.map(([variable]) => variable);

/** FLOTILLA_DEFAULT_PROVIDER and FLOTILLA_DEFAULT_MODEL win; one alone keeps its provider's usual model. */
export function defaultModel(env: Env): DefaultModel {
  const { FLOTILLA_DEFAULT_PROVIDER: provider, FLOTILLA_DEFAULT_MODEL: model } = env;
  const byEnvironment = byKey.find(([variable]) => isSet(env[variable]) || isSet(env[`${variable}_FILE`]))?.[1] ?? demo;
  if (!isSet(provider)) return isSet(model) ? { ...byEnvironment, model } : byEnvironment;
  const usual = [...byKey.map(([, candidate]) => candidate), demo].find((candidate) => candidate.provider === provider);
  return { provider, model: isSet(model) ? model : (usual?.model ?? demo.model) };
}

function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== "";
}
