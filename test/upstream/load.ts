// The fake upstream and its scenarios: a folder named by FLOTILLA_UPSTREAM, a newer copy beside the repository, or this copy.
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type * as UpstreamModule from "./upstream.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const beside = resolve(here, "../../../shared/upstream");
const folder = process.env.FLOTILLA_UPSTREAM ?? (existsSync(join(beside, "upstream.mjs")) ? beside : here);

export const upstream = (await import(pathToFileURL(join(folder, "upstream.mjs")).href)) as typeof UpstreamModule;
export const scenarios = upstream.loadScenarios();
export const expected = JSON.parse(readFileSync(join(folder, "expected.json"), "utf8")) as Record<string, Expected>;

export interface Expected {
  content?: unknown;
  stop_reason?: unknown;
  error_kind?: unknown;
  usage?: unknown;
  cost_usd?: unknown;
  retry?: unknown;
  retry_after_ms?: unknown;
  rules?: string[];
  any_of?: Expected[];
  requests?: { violations?: unknown[]; checks?: RequestCheck[] };
}

export interface RequestCheck {
  path?: string;
  length?: number;
  equals?: unknown;
  contains?: string;
  equals_all?: unknown[];
  set?: unknown[];
  no_key?: string;
}
