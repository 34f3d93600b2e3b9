// The part of a provider that is the same for all: what is asked first, and that no failure is thrown.
import type { AssistantMessage } from "@flotilla/contracts";
import { authGetToken, ProviderRequest } from "@flotilla/contracts";
import { FlotillaError } from "@flotilla/errors";
import type { Logger } from "@flotilla/telemetry";
import type { HandlerContext } from "@flotilla/worker";
import { describe, expect, it } from "vitest";
import { ProviderFailure } from "./failure.ts";
import { implementProvider } from "./implement-provider.ts";
import type { ProviderCall, StreamCall } from "./provider-call.ts";

const key = "very-secret-key";

async function answer(
  streamCall: StreamCall,
  options: {
    auth?: () => unknown;
    catalog?: () => unknown;
    signal?: AbortSignal;
    request?: Record<string, unknown>;
  } = {},
) {
  const logs: string[] = [];
  const log = (message: string, meta?: unknown) => logs.push(`${message} ${JSON.stringify(meta)}`);
  const logger = { debug: log, warn: log, error: log } as unknown as Logger;
  const bus = { nc: { publish: () => {} }, deltas: { append: async () => {} } };
  const [stream] = implementProvider({ name: "acme", credentialVariable: "ACME_KEY", bus, streamCall, now: () => 42 });
  const context = {
    signal: options.signal ?? new AbortController().signal,
    logger,
    call: async (contract: { id: string }) =>
      contract.id === authGetToken.id
        ? (options.auth ?? (() => ({ type: "api_key", key })))()
        : (options.catalog ?? (() => null))(),
  } as unknown as HandlerContext;
  const request = ProviderRequest.parse({
    session_id: "s",
    message_id: "m",
    model: "acme-1",
    messages: [],
    ...options.request,
  });
  const reply = (await stream?.handle(context, request as never)) as { message: AssistantMessage; streamed: boolean };
  return { ...reply, logs };
}

const says: StreamCall = async (call) => {
  call.answer.append(call.answer.open("text"), "Hi");
  call.reportUsage({ input: 1, output: 2, cache_read: 0, cache_write: 0 });
  return "end";
};
const failing = (thrown: unknown): StreamCall => {
  return async (call) => {
    call.answer.append(call.answer.open("text"), "So far");
    throw thrown;
  };
};

describe("a provider call", () => {
  it("answers the message and whether it was streamed", async () => {
    expect(await answer(says)).toMatchObject({
      message: {
        role: "assistant",
        content: [{ type: "text", text: "Hi" }],
        stop_reason: "end",
        error_kind: null,
        error_message: null,
        usage: { input: 1, output: 2 },
        model: "acme-1",
        provider: "acme",
        timestamp: 42,
      },
      streamed: true,
    });
  });

  it("takes model facts from the request, else from the catalog, and goes on without either", async () => {
    const facts: ProviderCall["model"][] = [];
    const spy: StreamCall = async (call) => {
      facts.push(call.model);
      return "end";
    };
    const meta = { id: "acme-1", provider: "acme", context_window: 9 };
    await answer(spy, { request: { model_meta: meta }, catalog: () => ({ ...meta, context_window: 1 }) });
    await answer(spy, { catalog: () => ({ ...meta, context_window: 7 }) });
    const { logs } = await answer(spy, {
      catalog: () => {
        throw new FlotillaError("WORKER_UNAVAILABLE", "nobody");
      },
    });
    expect(facts.map((model) => model?.context_window)).toEqual([9, 7, undefined]);
    expect(logs).toHaveLength(1);
  });

  it.each([
    [new FlotillaError("WORKER_UNAVAILABLE", "nobody offers auth::get_token"), "transient"],
    [new FlotillaError("TIMEOUT", "no answer"), "transient"],
    [new FlotillaError("FORBIDDEN", "not yours"), "permanent"],
  ])("without the credentials worker fails with %s", async (error, kind) => {
    const auth = () => {
      throw error;
    };
    const { message } = await answer(says, { auth });
    expect(message).toMatchObject({
      stop_reason: "error",
      error_kind: kind,
      error_message: `${error.code}: ${error.message}`,
    });
  });

  it.each([" ", "two\nlines", "naïve"])("with the unusable key %j fails before it reaches a header", async (bad) => {
    const uses: StreamCall = async ({ credential }) => {
      const { secretOf } = await import("./credential.ts");
      secretOf(credential);
      return "end";
    };
    const { message } = await answer(uses, { auth: () => ({ type: "api_key", key: bad }) });
    expect(message).toMatchObject({ stop_reason: "error", error_kind: "auth_expired" });
    expect(message.error_message).toContain("CREDENTIALS_MISSING");
  });

  it("keeps what came before a failure, its kind and its wait", async () => {
    const failure = new ProviderFailure({ kind: "rate_limited", message: `slow down, ${key}`, retryAfterMs: 7 });
    const { message } = await answer(failing(failure));
    expect(message).toMatchObject({
      content: [{ type: "text", text: "So far" }],
      stop_reason: "error",
      error_kind: "rate_limited",
      error_message: "slow down, [redacted]",
      retry_after_ms: 7,
    });
  });

  it("turns a defect into an error that says nothing of it, and logs it without the key (I13)", async () => {
    const { message, logs } = await answer(failing(new TypeError(`x of undefined near ${key}`)));
    expect(message).toMatchObject({
      stop_reason: "error",
      error_kind: "permanent",
      error_message: "INTERNAL: the acme worker failed",
    });
    expect(logs.join()).toContain("x of undefined");
    expect(logs.join()).not.toContain(key);
  });

  it("is aborted whatever was thrown, once the signal is", async () => {
    const { message } = await answer(failing(new Error("torn")), { signal: AbortSignal.abort() });
    expect(message).toMatchObject({
      stop_reason: "aborted",
      error_kind: null,
      error_message: null,
      content: [{ text: "So far" }],
    });
  });
});
