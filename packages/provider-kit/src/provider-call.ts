// One model call as a vendor's code sees it: what to send, where the answer goes, and how it may end.
import type { Credential, ProviderRequest } from "@flotilla/contracts";
import type { Logger } from "@flotilla/telemetry";
import type { z } from "zod";
import type { Answer } from "./answer.ts";
import type { TokenCounts } from "./pricing.ts";
import type { ToolNames } from "./tool-names.ts";

export type ModelRequest = z.output<typeof ProviderRequest>;
export type ModelMeta = NonNullable<ModelRequest["model_meta"]>;

export interface ProviderCall {
  readonly request: ModelRequest;
  readonly credential: Credential;
  /** What the catalog knows about the model; null when it knows nothing. */
  readonly model: ModelMeta | null;
  /** Most tokens the answer may have. */
  readonly maxTokens: number;
  readonly names: ToolNames;
  readonly answer: Answer;
  readonly signal: AbortSignal;
  readonly logger: Logger;
  readonly now: () => number;
  /** The call's totals so far; the last report counts. */
  reportUsage(counts: TokenCounts): void;
}

/** How an answer ended whose terminal signal came. */
export type Ending = "end" | "length";

/**
 * Contract: resolves when the vendor's terminal signal came; throws ProviderFailure for everything else. What was
 * appended to the answer before a failure is kept.
 */
export type StreamCall = (call: ProviderCall) => Promise<Ending>;
