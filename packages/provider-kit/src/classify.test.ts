// Vendors' errors by what they mean, in the words of many servers.
import { describe, expect, it } from "vitest";
import { failureOf, kindOf } from "./classify.ts";
import { readVendorError, vendorErrorOf } from "./vendor-error.ts";

const saying = (message: string, status?: number) => kindOf({ code: "", type: "", message, status });

describe("a prompt that is too long, in any words", () => {
  it.each([
    "prompt is too long: 233153 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease input length or `max_tokens` and try again",
    "Input is too long for requested model.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "Please reduce the length of the messages or completion.",
    "This model's maximum context length is 4097 tokens. However, your messages resulted in 4294 tokens.",
    "This endpoint's maximum context length is 131072 tokens. However, you requested about 150000 tokens.",
    "prompt token count of 130000 exceeds the limit of 128000",
    "the request exceeds the available context size, try increasing it",
    "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
    "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input",
    "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
    "invalid params, context window exceeds limit (2013)",
    "Your request exceeded model token limit: 262144 (requested: 270000)",
    "Invalid request: Your request exceeded model token limit: 8192",
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "Range of input length should be [1, 98304]",
    "Prompt exceeds max length",
    "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000",
    "Input length (265330) exceeds model's maximum context length (262144).",
    "Requested token count exceeds the model's maximum context length of 202752 tokens.",
    "'max_tokens' is too large: 2000. This model's maximum context length is 4096 tokens and your request has 2104 input tokens.",
    "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 400000 tokens.",
    "prompt too long; exceeded max context length by 12 tokens",
    "The conversation is too long for this model.",
    "Your messages are too long, please shorten the conversation.",
    "The prompt does not fit in the model's window",
    "Context size has been exceeded.",
    "input is longer than the context this model has: over the context limit",
  ])("%s", (message) => {
    expect(saying(message, 400)).toBe("context_overflow");
    expect(saying(message)).toBe("context_overflow");
    expect(saying(message, 500)).toBe("context_overflow");
  });

  it.each(["context_length_exceeded", "request_too_large", "model_context_window_exceeded"])("code %s", (code) => {
    expect(kindOf({ code, type: "invalid_request_error", message: "no", status: 400 })).toBe("context_overflow");
  });
});

describe("what only looks like it", () => {
  it.each([
    "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for this model",
    "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.",
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    "`max_tokens` must be greater than `thinking.budget_tokens`.",
    "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 50 instead.",
    "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.",
    "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024.",
    "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 200 instead.",
    "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes",
    "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    "A maximum of 100 PDF pages may be provided.",
    "The requested max_tokens 9000 exceeds the limit of 8192 completion tokens allowed for this model",
    "The image file is too large. Reduce the size of the file.",
    "temperature: range: 0..1",
    "stop_sequences: each stop sequence must contain non-whitespace",
    "messages: roles must alternate between user and assistant",
    "messages.1: tool_use ids were found without tool_result blocks immediately after",
    "Invalid value: 'x'. Supported values are: 'system', 'assistant', 'user'.",
    "metadata.user_id: String should have at most 256 characters",
  ])("%s", (message) => {
    expect(saying(message, 400)).toBe("permanent");
  });

  it.each([
    "This request would exceed your organization's maximum usage increase rate for input tokens per minute.",
    "Rate limit reached for gpt on tokens per min (TPM): Limit 30000, Requested 40000. The input must be reduced.",
    "Request too large for model on tokens per minute: Limit 6000, Requested 9000, please reduce your message size.",
  ])("%s", (message) => {
    expect(saying(message, 429)).toBe("rate_limited");
    expect(saying(message)).toBe("rate_limited");
  });
});

describe("money, models and keys", () => {
  it.each([
    ["You exceeded your current quota, please check your plan and billing details.", 429],
    ["Your credit balance is too low to access the API.", 400],
    ["Insufficient Balance", 402],
    ["Your account is not active, please check your billing details on our website.", 429],
    ["The model `x` does not exist", 404],
    ["Model x not found", undefined],
    ["No models loaded. Please load a model in the developer page.", 400],
    ["This project has reached its monthly spend limit", 429],
  ])("%s is permanent", (message, status) => {
    expect(saying(message, status)).toBe("permanent");
  });

  it("does not take a link to a billing page for an empty purse", () => {
    const message =
      "Rate limit reached. You can increase your rate limit by adding a payment method at https://x.example/account/billing.";
    expect(kindOf({ code: "rate_limit_exceeded", type: "requests", message, status: 429 })).toBe("rate_limited");
  });

  it.each([
    ["Invalid API key", 400],
    ["Unauthorized", undefined],
    ["anything", 401],
    ["anything", 403],
  ])("%s (%s) is about the key", (message, status) => {
    expect(saying(message, status)).toBe("auth_expired");
  });

  it("lets a 4xx stand against a wrapper's general type", () => {
    expect(kindOf({ code: "", type: "api_error", message: "Bad field", status: 400 })).toBe("permanent");
    expect(kindOf({ code: "", type: "server_error", message: "Broken", status: undefined })).toBe("transient");
  });

  it("takes names of Object.prototype for no known code", () => {
    expect(kindOf({ code: "constructor", type: "toString", message: "x", status: 400 })).toBe("permanent");
  });
});

describe("error bodies", () => {
  it.each([
    ['{"error":{"message":"m","type":"t","code":"c"}}', { message: "m", type: "t", code: "c" }],
    ['{"type":"error","error":{"type":"t","message":"m"}}', { message: "m", type: "t", code: "" }],
    ['{"error":"m"}', { message: "m" }],
    ['{"message":"m","code":429}', { message: "m", code: "", status: 429 }],
    ['{"detail":"m"}', { message: "m" }],
    ['[{"error":{"message":"m","code":"503"}}]', { message: "m", status: 503 }],
    ['{"error":{"code":"c"}}', { message: "c" }],
    ['"m"', { message: "m" }],
    ["<html><style>x{}</style><body>Bad\n <b>Gateway</b></body></html>", { message: "Bad Gateway" }],
    ["", { message: "" }],
  ])("%s", (body, wanted) => {
    expect(readVendorError(body)).toMatchObject(wanted);
  });

  it("are cut to a length that can be shown", () => {
    expect(vendorErrorOf({ error: { message: "x".repeat(9_999) } }).message).toHaveLength(2_000);
  });

  it("never show what looks like a key (I13)", () => {
    const error = {
      code: "invalid_api_key",
      type: "",
      message: "Incorrect API key provided: sk-proj-abc***xyz. Authorization: Bearer abcdefgh",
      status: 401,
    };
    const { message } = failureOf(error, { provider: "p", now: 0 });
    expect(message).toBe("p 401 invalid_api_key: Incorrect API key provided: [redacted] Authorization: [redacted]");
  });
});
