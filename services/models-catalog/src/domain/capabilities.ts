// The capability strings and the columns they test (contracts.md 2.8). Pure.
import type { Model } from "@flotilla/contracts";

const tests: Readonly<Record<string, (model: Model) => boolean>> = {
  thinking: (model) => model.supports_thinking === true,
  "thinking:low": (model) => model.supports_thinking === true,
  "thinking:medium": (model) => model.supports_thinking === true,
  "thinking:high": (model) => model.supports_thinking === true,
  "thinking:xhigh": (model) => model.supports_xhigh === true,
  tools: (model) => model.supports_tools === true,
  vision: (model) => model.supports_vision === true,
  cache: (model) => model.supports_cache === true,
};

/** False for a capability that does not exist. */
export function supports(model: Model, capability: string): boolean {
  return Object.hasOwn(tests, capability) && tests[capability]?.(model) === true;
}
