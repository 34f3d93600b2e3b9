// How one vendor's Chat Completions API differs from the others.
import type { ProviderCall } from "../provider-call.ts";

export interface ChatDialect {
  /** Provider name, also in error messages. */
  readonly provider: string;
  /** The full endpoint. */
  readonly url: string;
  readonly maxTokensField: "max_completion_tokens" | "max_tokens";
  /** Longest call id that the vendor takes. @default 64 */
  readonly maxIdLength?: number;
  /** Longest description of a tool. @default unlimited */
  readonly maxDescriptionChars?: number;
  /** Longest silence of the stream. @default 120000 */
  readonly stallTimeoutMs?: number;
  /** How long usage and `[DONE]` may take once the answer is complete. @default 5000 */
  readonly trailerMs?: number;
  /** More request fields. */
  readonly extraFields?: (call: ProviderCall) => Record<string, unknown>;
  /** @default global fetch */
  readonly fetch?: typeof fetch;
}
