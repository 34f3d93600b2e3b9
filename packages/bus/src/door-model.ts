// Which provider and model a turn gets, and the refusal of unknown ones before anything is stored (422).
import { type Model, modelsGet, modelsList, type RunStartRequest } from "@flotilla/contracts";
import { FlotillaError, invalidInput, isFlotillaError } from "@flotilla/errors";
import type { Bus } from "./types.ts";

export interface ModelDefaults {
  readonly provider: string;
  readonly model: string;
}

interface Chosen {
  provider: string;
  model: string;
  fallback: { provider: string; model: string }[];
}

const knownForMs = 30_000;
const known = new WeakMap<Bus, Map<string, number>>();

export async function chooseModel(bus: Bus, request: RunStartRequest, defaults: ModelDefaults): Promise<Chosen> {
  const first = await primary(bus, request, defaults);
  await check(bus, first.provider, first.model, "");
  const fallback = request.fallback ?? [];
  for (const [index, next] of fallback.entries()) await check(bus, next.provider, next.model, `fallback.${index}.`);
  return { ...first, fallback };
}

async function primary(
  bus: Bus,
  request: RunStartRequest,
  defaults: ModelDefaults,
): Promise<{ provider: string; model: string }> {
  const { provider, model } = request;
  if (provider !== undefined && model !== undefined) return { provider, model };
  if (model === undefined) {
    if (provider === undefined || provider === defaults.provider)
      return { provider: defaults.provider, model: defaults.model };
    if (bus.registry.resolve(`provider::${provider}::stream`) === null) throw unknownProvider(provider, "provider");
    throw invalidInput(`provider ${provider} needs a model`, "model");
  }
  if (model === defaults.model) return { provider: defaults.provider, model };
  const offers = (await listed(bus)).filter((row) => row.id === model).map((row) => row.provider);
  const chosen = offers.includes(defaults.provider) ? defaults.provider : offers[0];
  if (chosen === undefined) throw unknownModel(model, "model");
  return { provider: chosen, model };
}

async function listed(bus: Bus): Promise<Model[]> {
  try {
    return (await bus.call(modelsList, {}, { timeoutMs: 2_000 })).models;
  } catch (cause) {
    const message = "the models catalog is away: name the provider beside the model, or try again";
    throw new FlotillaError("WORKER_UNAVAILABLE", message, { field: "model", retryAfterMs: 1_000, cause });
  }
}

/** The catalog being away does not stop a turn from being accepted; the orchestrator checks again when it opens it. */
async function check(bus: Bus, provider: string, model: string, prefix: string): Promise<void> {
  if (bus.registry.resolve(`provider::${provider}::stream`) === null)
    throw unknownProvider(provider, `${prefix}provider`);
  const seen = known.get(bus) ?? new Map<string, number>();
  known.set(bus, seen);
  const key = `${provider}/${model}`;
  if ((seen.get(key) ?? 0) > Date.now()) return;
  try {
    const row = await bus.call(modelsGet, { provider, model_id: model }, { timeoutMs: 2_000 });
    if (row === null) throw unknownModel(model, `${prefix}model`);
    seen.set(key, Date.now() + knownForMs);
  } catch (error) {
    const isAway = isFlotillaError(error) && (error.disposition === "retry" || error.code === "FUNCTION_NOT_FOUND");
    if (!isAway) throw error;
  }
}

function unknownProvider(provider: string, field: string): FlotillaError {
  return new FlotillaError("PROVIDER_UNKNOWN", `no worker offers provider ${provider}`, { field });
}

function unknownModel(model: string, field: string): FlotillaError {
  return new FlotillaError("MODEL_UNKNOWN", `the catalog has no model ${model}`, { field });
}
