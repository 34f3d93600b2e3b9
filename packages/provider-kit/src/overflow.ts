// Whether an error says, in any words, that the prompt does not fit the model. Pure.

const codes = new Set([
  "context_length_exceeded",
  "context_window_exceeded",
  "model_context_window_exceeded",
  "prompt_too_long",
  "request_too_large",
  "string_above_max_length",
]);

const exceeds =
  /exceed|too (?:long|large|big|many)|maximum|\bmax\b|larger|greater|longer|more than|over(?:flow|run|s)?\b|reduce|shorten|trim|limit|\bfull\b|\bfits?\b|beyond|\bonly\b|surpass|[<>]|up to/;
const contextWords =
  /context[\s_-]*(?:length|window|size|limit|budget)|\bn_ctx\b|\bcontext\b.{0,30}overflow|overflow.{0,40}\bcontext\b/;
const inputWords = "(?:prompt|input|messages?|conversation|transcript|history|request|context|chat|text|query|content)";

/** Each says that something that goes in is too much. Letters are lower case by then. */
const patterns: readonly RegExp[] = [
  // "prompt is too long", "your conversation has become too large", "messages too long"
  new RegExp(`\\b${inputWords}\\b(?: \\w+){0,4} too (?:long|large|big)\\b`),
  /\btoo (?:long|large|big)\b.{0,40}\b(?:prompt|input|conversation|context)\b/,
  // "too many tokens", "too many input tokens"
  /\btoo many (?:\w+ )?tokens\b/,
  // "reduce the length of the messages", "shorten your prompt"
  new RegExp(`\\b(?:reduce|shorten|trim|truncate|decrease)\\b.{0,40}\\b(?:length|size|number|amount|${inputWords})\\b`),
  // "input token count (1) exceeds …", "prompt tokens > max", "request exceeded model token limit"
  new RegExp(
    `\\b${inputWords}\\b.{0,80}\\btokens?\\b.{0,80}(?:exceed|greater|larger|longer|more than|above|beyond|over\\b|surpass|>)`,
  ),
  /(?:exceed|surpass|above|beyond|greater than|more than|larger than|longer than|\bover\b).{0,80}\b(?:tokens?|input|prompt)\b.{0,40}\b(?:limit|maximum|length|window|size|allowed|count)/,
  // "input length exceeds", "range of input length should be", "prompt exceeds max length"
  /\b(?:prompt|input)[\s_-](?:token )?(?:length|size|count)\b.{0,80}(?:exceed|too|maximum|max|should be|must be|limit|at most)/,
  /\b(?:prompt|input|conversation)\b.{0,20}exceed/,
  /\btoken limit\b.{0,40}exceed|exceed.{0,40}\btoken limit\b/,
  /\b(?:maximum|max) (?:allowed )?(?:prompt|input) (?:length|size|tokens?)\b/,
  // "does not fit in the model's window"
  /(?:not|n't|cannot|can't) fit\b.{0,60}\b(?:window|model|context|memory slot)/,
];

/** What looks alike and is something else. */
const rateWords = /per (?:minute|hour|day|second)|\brate[ _-]?limit|\b(?:tpm|rpm|tpd|rpd)\b|\bquota\b/;
const outputCap =
  /max_(?:completion_|output_|new_)?tokens|(?:output|completion|completions|response|generated) tokens|budget_tokens/;
const attachments = /\b(?:image|images|file|files|attachment|document|pdf|audio|video|pages?)\b/;
const parameters =
  /\b(?:tools?|tool_call_id|tool_calls|function|functions|name|description|id|schema|stop|stop_sequences?|metadata|user|logit_bias|temperature|top_p)\b/;

export interface ErrorText {
  readonly code: string;
  readonly type: string;
  readonly message: string;
}

export function isOverflow(error: ErrorText): boolean {
  const message = error.message.toLowerCase();
  if (error.code === "string_above_max_length") return /messages\[\d+\]\.content/.test(message);
  if (codes.has(error.code) || codes.has(error.type)) return true;
  if (rateWords.test(message)) return false;
  if (contextWords.test(message) && exceeds.test(message)) return true;
  if (isAboutSomethingElse(message)) return false;
  return patterns.some((pattern) => pattern.test(message));
}

function isAboutSomethingElse(message: string): boolean {
  const saysInput = /\b(?:prompt|input|conversation|context|messages)\b/.test(message);
  if (outputCap.test(message) && !saysInput) return true;
  const saysTokens = /\btokens?\b/.test(message);
  if (attachments.test(message) && !saysTokens) return true;
  return parameters.test(message) && !saysTokens && !/\b(?:prompt|conversation|context)\b/.test(message);
}
