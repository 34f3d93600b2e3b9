// Thinking levels as the API's reasoning effort. Pure.
import type { ThinkingLevel } from "@flotilla/contracts";
import type { ModelMeta } from "@flotilla/provider-kit";

/** Nothing for a model that is not known to reason: the API refuses the field there. */
export function reasoningEffort(
  level: ThinkingLevel | null | undefined,
  model: ModelMeta | null,
): { reasoning_effort?: Exclude<ThinkingLevel, "off"> } {
  if (level == null || level === "off" || model?.supports_thinking !== true) return {};
  return { reasoning_effort: level === "xhigh" && model.supports_xhigh !== true ? "high" : level };
}
