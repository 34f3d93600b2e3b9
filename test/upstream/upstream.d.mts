// Types of the fake upstream, which is plain JavaScript so that it can be replaced by a newer copy as it is.
export interface ScenarioReply {
  events?: unknown[];
  json?: unknown;
  raw?: string;
  status?: number;
  headers?: Record<string, string>;
  envelope?: Record<string, unknown>;
  eol?: string;
  space?: boolean;
  bom?: boolean;
  gzip?: boolean;
  multiline?: boolean;
  escapeNonAscii?: boolean;
  done?: boolean;
  end?: "stall" | "reset" | "cut";
  stallMs?: number;
  headDelayMs?: number;
  resetBeforeHeaders?: boolean;
  chunk?: { mode: string; sizes?: number[]; needles?: string[]; delayMs?: number };
}
export interface Scenario {
  name: string;
  kind: "response" | "request";
  api: "anthropic" | "openai";
  provider: string;
  about: string;
  normal?: boolean;
  call: {
    provider: string;
    model: string;
    system_prompt?: string;
    tools?: unknown[];
    messages: unknown[];
    [field: string]: unknown;
  };
  reply?: ScenarioReply;
  replies?: ScenarioReply[];
}
export interface CatalogEntry {
  id: string;
  provider: string;
  context_window: number;
  max_output_tokens: number;
  pricing: Record<string, number>;
}
export interface Scenarios {
  catalog: CatalogEntry[];
  scenarios: Scenario[];
  byName: Map<string, Scenario>;
}
export interface UpstreamRequest {
  scenario: string | null;
  tag: string;
  attempt: number;
  path: string;
  headers: Record<string, string>;
  body: Record<string, unknown>;
  violations: { rule: string; message: string }[];
  status: number | null;
  closed_early: boolean;
}
export interface Upstream {
  port: number;
  url: string;
  requests(): UpstreamRequest[];
  reset(): void;
  close(): Promise<void>;
}
export function loadScenarios(file?: string): Scenarios;
export function startUpstream(options?: {
  port?: number;
  host?: string;
  scenarios?: Scenarios;
  strict?: boolean;
}): Promise<Upstream>;
