// The HTTP API on real NATS: turns, reads, approvals, trigger, bad input, tokens.
import { writeFile } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Bus } from "@flotilla/bus";
import { type StartedNats, startNats, until } from "@flotilla/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { aCommit, anAssistant, aRecord, aText, aTurn } from "./builders.ts";
import { Committer, connectAs, offer, startHarness, type TestHarness } from "./support.ts";

let nats: StartedNats;
let operator: Bus;
let harness: TestHarness;
const buses: Bus[] = [];

async function aWorker(name: string, functions: Parameters<typeof offer>[1]): Promise<{ stop(): Promise<void> }> {
  const bus = await connectAs(nats, name);
  buses.push(bus);
  return offer(bus, functions);
}

beforeAll(async () => {
  nats = await startNats();
  operator = await connectAs(nats, "operator");
  await aWorker("provider-scripted", {
    "provider::scripted::stream": () => null,
    "provider::scripted::calls": () => ({ calls: [] }),
  });
  harness = await startHarness(nats, { FLOTILLA_BODY_LIMIT_BYTES: "300000" });
  await until(() => harness.bus.registry.resolve("provider::scripted::stream")?.live, {
    what: "the provider is known",
  });
});
afterAll(async () => {
  await harness.stop();
  for (const bus of buses) await bus.close();
  await operator.close();
  await nats.stop();
});

type Json = Record<string, unknown>;
interface Answer {
  status: number;
  body: Json;
  type: string | null;
}

async function call(path: string, init: RequestInit = {}, base = harness.url): Promise<Answer> {
  const response = await fetch(`${base}${path}`, init);
  const type = response.headers.get("content-type");
  return { status: response.status, body: (await response.json()) as Json, type };
}

function post(path: string, body: unknown, headers: Record<string, string> = {}, base = harness.url): Promise<Answer> {
  const init = {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  };
  return call(path, init, base);
}

describe("POST /v1/sessions/{sid}/turns", () => {
  it("accepts a turn while no orchestrator is live, and says so only once the input is durable (I1)", async () => {
    const { status, body } = await post("/v1/sessions/t1/turns", { message_id: "m1", text: "hello" });
    expect({ status, body }).toMatchObject({
      status: 202,
      body: { session_id: "t1", message_id: "m1", accepted: true },
    });
    const input = await operator.journal.readInput<{ turn_id: string }>("t1", "start", "m1");
    expect(body.turn_id).toBe(input?.body.turn_id);
    expect(body.position).toBe(`${input?.seq}.0`);
    const session = await call("/v1/sessions/t1");
    expect(session.body).toMatchObject({
      state: "provisioning",
      turn_id: body.turn_id,
      turn_count: 0,
      awaiting_approval: [],
    });
  });

  it("answers the same for the same id and body, by field or by header, and 409 for another body", async () => {
    const first = await post("/v1/sessions/t2/turns", { message_id: "m1", text: "hello" });
    const again = await post("/v1/sessions/t2/turns", { message_id: "m1", text: "hello" });
    const byHeader = await post("/v1/sessions/t2/turns", { text: "hello" }, { "idempotency-key": "m1" });
    expect([again.body, byHeader.body]).toEqual([first.body, first.body]);
    const other = await post("/v1/sessions/t2/turns", { message_id: "m1", text: "bye" });
    expect(other).toMatchObject({
      status: 409,
      body: { code: "MESSAGE_ID_CONFLICT" },
      type: "application/problem+json",
    });
  });

  it("refuses a header and a field that differ", async () => {
    const answer = await post("/v1/sessions/t3/turns", { message_id: "m1", text: "x" }, { "idempotency-key": "m2" });
    expect(answer).toMatchObject({ status: 400, body: { code: "INVALID_INPUT", field: "message_id" } });
  });

  it.each([
    [{}, "text"],
    [{ text: "" }, "text"],
    [{ messages: [] }, "messages"],
    [{ text: "x", messages: [{ role: "user", content: "x" }] }, "text"],
    [{ text: "x", modle: "play" }, "modle"],
    [{ text: 5 }, "text"],
    [{ text: "x", message_id: "no spaces" }, "message_id"],
    [{ text: "x", on_busy: "wait" }, "on_busy"],
    [{ text: "x", max_turns: 0 }, "max_turns"],
    [{ text: "x", fallback: [{ provider: "a", model: "b", extra: 1 }] }, "fallback.0.extra"],
    [{ messages: [{ role: "assistant", content: "x" }] }, "messages.0.role"],
    [{ messages: [{ role: "user" }] }, "messages.0.content"],
  ])("refuses %j with 400 and field %s", async (body, field) => {
    const answer = await post("/v1/sessions/bad/turns", body);
    expect(answer).toMatchObject({ status: 400, body: { code: "INVALID_INPUT", field, status: 400 } });
    expect(answer.type).toBe("application/problem+json");
    expect(await operator.journal.lastSequence("bad")).toBe(0);
  });

  it("refuses an unknown provider with 422", async () => {
    const answer = await post("/v1/sessions/t4/turns", { text: "x", provider: "nobody", model: "m" });
    expect(answer).toMatchObject({ status: 422, body: { code: "PROVIDER_UNKNOWN", field: "provider" } });
  });

  it("answers 503 for a model without a provider while no catalog is there to look it up", async () => {
    const answer = await post("/v1/sessions/t4/turns", { text: "x", model: "m" });
    expect(answer).toMatchObject({ status: 503, body: { code: "WORKER_UNAVAILABLE", field: "model" } });
  });

  it.each(["a b", "x".repeat(65), "a.b", "ü", "a/b"])("refuses the session id %j with 400", async (sid) => {
    const answer = await post(`/v1/sessions/${encodeURIComponent(sid)}/turns`, { text: "x" });
    expect(answer).toMatchObject({ status: 400, body: { field: "session_id" } });
  });

  it("refuses what is not JSON with 400 and another media type with 415", async () => {
    const json = { "content-type": "application/json" };
    const path = "/v1/sessions/t5/turns";
    expect(await call(path, { method: "POST", headers: json, body: "{nope" })).toMatchObject({
      status: 400,
      body: { field: "body" },
    });
    expect(await call(path, { method: "POST", headers: json, body: "[1]" })).toMatchObject({ status: 400 });
    expect(await call(path, { method: "POST", headers: json })).toMatchObject({ status: 400, body: { field: "body" } });
    expect(await call(path, { method: "POST" })).toMatchObject({ status: 400, body: { field: "body" } });
    const nested = `{"messages":${"[".repeat(5000)}${"]".repeat(5000)}}`;
    expect(await call(path, { method: "POST", headers: json, body: nested })).toMatchObject({ status: 400 });
    const form = { "content-type": "application/x-www-form-urlencoded" };
    expect(await call(path, { method: "POST", headers: form, body: "text=x" })).toMatchObject({
      status: 415,
      body: { code: "UNSUPPORTED_MEDIA_TYPE", field: "content-type" },
    });
  });

  it("takes a message of 200 KB and refuses a body over the limit with 413, also one of unknown length", async () => {
    const large = await post("/v1/sessions/t6/turns", { message_id: "m1", text: "x".repeat(200_000) });
    expect(large.status).toBe(202);
    expect(await post("/v1/sessions/t6/turns", { text: "x".repeat(400_000) })).toMatchObject({
      status: 413,
      body: { code: "PAYLOAD_TOO_LARGE" },
    });
    const stream = new Blob([JSON.stringify({ text: "x".repeat(400_000) })]).stream();
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: stream, duplex: "half" };
    expect(await call("/v1/sessions/t6/turns", init as RequestInit)).toMatchObject({ status: 413 });
  });

  it("goes through run::start while a worker offers it", async () => {
    const seen: Json[] = [];
    const answer = { session_id: "t7", turn_id: "t-x", message_id: "m1", accepted: true, position: "1.0" };
    const worker = await aWorker("turn-orchestrator", {
      "run::start": (body: Json) => {
        seen.push(body);
        return answer;
      },
    });
    await until(() => harness.bus.registry.resolve("run::start")?.live, { what: "run::start is live" });
    expect(await post("/v1/sessions/t7/turns", { message_id: "m1", text: "hi" })).toMatchObject({
      status: 202,
      body: answer,
    });
    expect(seen).toMatchObject([{ session_id: "t7", message_id: "m1", text: "hi" }]);
    await worker.stop();
    await until(() => harness.bus.registry.resolve("run::start")?.live === false, { what: "run::start has left" });
    expect(await post("/v1/sessions/t7/turns", { message_id: "m2", text: "hi" })).toMatchObject({
      status: 202,
      body: { message_id: "m2" },
    });
  });
});

describe("reads of a session", () => {
  it("answers state, usage, cost and transcript from the journal", async () => {
    const turn = aTurn({ turnId: "t-a", message: anAssistant([aText("hello")]), seqNo: 1, sessionId: "r1" });
    const committer = new Committer(operator, "r1");
    await committer.commit(turn.commits[0] as never);
    await committer.commit(turn.commits[1] as never, "idle");
    const { body } = await call("/v1/sessions/r1");
    expect(body).toMatchObject({
      session_id: "r1",
      state: "stopped",
      turn_id: "t-a",
      turn_count: 1,
      awaiting_approval: [],
      cost_usd: 0.000013,
    });
    expect(body.usage).toMatchObject({ input: 3, output: 5, cost_usd: 0.000013 });
    const { messages } = (await call("/v1/sessions/r1/messages")).body as {
      messages: { entry_id: string; message: Json }[];
    };
    expect(messages.map(({ entry_id, message }) => [entry_id, message.role])).toEqual([
      ["u-t-a", "user"],
      [turn.entryId, "assistant"],
    ]);
    expect(messages[1]?.message.usage).toMatchObject({ cost_usd: 0.000013 });
  });

  it.each(["", "/messages", "/events"])("answers 404 for an unknown session at /v1/sessions/{sid}%s", async (rest) => {
    expect(await call(`/v1/sessions/unknown${rest}`)).toMatchObject({
      status: 404,
      body: { code: "SESSION_NOT_FOUND" },
    });
  });

  it.each(["abort", "inbox/steering", "approvals/c1"])(
    "answers 404 for an unknown session at POST %s",
    async (rest) => {
      const body =
        rest === "abort"
          ? {}
          : rest.startsWith("inbox")
            ? { messages: [{ content: "x" }] }
            : { decision: "allow", args_digest: "x" };
      expect(await post(`/v1/sessions/unknown/${rest}`, body)).toMatchObject({ status: 404 });
    },
  );

  it("answers 503 for the list while the session worker is away, and checks the page first", async () => {
    expect(await call("/v1/sessions?limit=5000")).toMatchObject({ status: 400, body: { field: "limit" } });
    expect(await call("/v1/sessions?offset=-1")).toMatchObject({ status: 400, body: { field: "offset" } });
    const worker = await aWorker("session", {
      "session-tree::list": (body: Json) => ({ sessions: [{ asked: body }], total: 1 }),
    });
    await until(() => harness.bus.registry.resolve("session-tree::list")?.live, { what: "the list is live" });
    const { body } = await call("/v1/sessions?limit=2&offset=1");
    expect(body).toMatchObject({ sessions: [{ asked: { limit: 2, offset: 1 } }], total: 1 });
    await worker.stop();
    await until(() => harness.bus.registry.resolve("session-tree::list")?.live === false, {
      what: "the list has left",
    });
    expect(await call("/v1/sessions")).toMatchObject({ status: 503, body: { code: "WORKER_UNAVAILABLE" } });
  });

  it("answers unknown addresses with a problem document", async () => {
    expect(await call("/v1/nothing")).toMatchObject({
      status: 404,
      body: { code: "NOT_FOUND" },
      type: "application/problem+json",
    });
  });
});

describe("abort and inbox", () => {
  it("answers aborted: false when nothing runs, with or without a body", async () => {
    const committer = new Committer(operator, "a1");
    await committer.commit(aCommit(1, { state: aRecord({ session_id: "a1", state: "stopped" }) }), "idle");
    expect(await call("/v1/sessions/a1/abort", { method: "POST" })).toMatchObject({
      status: 200,
      body: { session_id: "a1", aborted: false, state: "stopped" },
    });
    expect(await post("/v1/sessions/a1/abort", { reason: "enough" })).toMatchObject({ status: 200 });
    expect(await post("/v1/sessions/a1/abort", { reson: "enough" })).toMatchObject({
      status: 400,
      body: { field: "reson" },
    });
  });

  it("stores an inbox message once, and refuses one on an idle session with SESSION_IDLE", async () => {
    const committer = new Committer(operator, "i1");
    await committer.commit(aCommit(1, { state: aRecord({ session_id: "i1" }) }));
    const body = { message_id: "s1", messages: [{ role: "user", content: "faster" }] };
    const first = await post("/v1/sessions/i1/inbox/steering", body);
    expect(first).toMatchObject({ status: 202, body: { message_id: "s1", accepted: true } });
    expect((await post("/v1/sessions/i1/inbox/steering", body)).body).toEqual(first.body);
    expect(await operator.journal.readInput("i1", "steering", "s1")).not.toBeNull();
    expect(await post("/v1/sessions/i1/inbox/other", body)).toMatchObject({ status: 400, body: { field: "name" } });
    const idle = new Committer(operator, "i2");
    await idle.commit(aCommit(1, { state: aRecord({ session_id: "i2", state: "stopped" }) }), "idle");
    expect(await post("/v1/sessions/i2/inbox/followup", body)).toMatchObject({
      status: 409,
      body: { code: "SESSION_IDLE" },
    });
  });
});

describe("approvals", () => {
  it("answers 503 soon while no gate is live", async () => {
    expect(await call("/v1/approvals")).toMatchObject({ status: 503, body: { code: "WORKER_UNAVAILABLE" } });
  });

  it.each([
    [{}, "decision"],
    [{ decision: "allow" }, "args_digest"],
    [{ decision: "maybe", args_digest: "sha256:0" }, "decision"],
    [{ decision: "allow", args_digest: "" }, "args_digest"],
    [{ decision: "allow", args_digest: "sha256:0", why: "x" }, "why"],
  ])("refuses the decision %j with 400 and field %s", async (body, field) => {
    expect(await post("/v1/sessions/t1/approvals/c1", body)).toMatchObject({ status: 400, body: { field } });
  });

  it("passes a decision to the gate with its call", async () => {
    const worker = await aWorker("approval-gate", { "approval::resolve": (body: Json) => ({ ok: true, ...body }) });
    await until(() => harness.bus.registry.resolve("approval::resolve")?.live, { what: "the gate is live" });
    await new Committer(operator, "p1").commit(aCommit(1, { state: aRecord({ session_id: "p1" }) }));
    const answer = await post("/v1/sessions/p1/approvals/c1", {
      decision: "deny",
      args_digest: "sha256:0",
      reason: "no",
    });
    expect(answer).toMatchObject({ status: 200, body: { ok: true } });
    await worker.stop();
  });
});

describe("POST /v1/trigger", () => {
  it("starts a turn with an envelope like the reference's", async () => {
    const answer = await post("/v1/trigger", { session_id: "g1", message_id: "m1", payload: { text: "hi" } });
    expect(answer).toMatchObject({
      status: 200,
      body: {
        status_code: 200,
        headers: { "content-type": "application/json" },
        body: { session_id: "g1", accepted: true },
      },
    });
  });

  it("forbids internal functions with 403 and does not know others with 404", async () => {
    for (const id of ["auth::get_token", "policy::check_permissions", "provider::scripted::stream"]) {
      expect(await post("/v1/trigger", { function_id: id, payload: {} })).toMatchObject({
        status: 403,
        body: { code: "FORBIDDEN" },
      });
    }
    expect(await post("/v1/trigger", { function_id: "acme::none", payload: {} })).toMatchObject({
      status: 404,
      body: { code: "FUNCTION_NOT_FOUND", field: "function_id" },
    });
    expect(await post("/v1/trigger", { function_id: "nonsense", payload: {} })).toMatchObject({
      status: 400,
      body: { field: "function_id" },
    });
    expect(await post("/v1/trigger", { payload: "text" })).toMatchObject({ status: 400, body: { field: "payload" } });
  });

  it("calls an allowed function and passes its answer on", async () => {
    const answer = await post("/v1/trigger", {
      function_id: "provider::scripted::calls",
      payload: { session_id: "g1" },
    });
    expect(answer).toMatchObject({ status: 200, body: { status_code: 200, body: { calls: [] } } });
  });
});

describe("the fleet's own addresses", () => {
  it("lists workers and functions from the registry", async () => {
    const workers = (await call("/v1/workers")).body.workers as Json[];
    expect(workers).toContainEqual(
      expect.objectContaining({ worker: "provider-scripted", live: true, version: "1.0.0" }),
    );
    const functions = (await call("/v1/functions")).body.functions as Json[];
    expect(functions).toContainEqual(
      expect.objectContaining({
        id: "provider::scripted::stream",
        worker: "provider-scripted",
        instances: 1,
        request_schema: {},
      }),
    );
  });

  it("is not ready while nothing can run a turn, and alive all the same", async () => {
    expect(await call("/readyz")).toMatchObject({
      status: 503,
      body: { status: "unavailable", checks: { bus: "ok" } },
    });
    expect(await call("/livez")).toMatchObject({ status: 200 });
  });

  it("serves an OpenAPI 3.1 document of every route", async () => {
    const { body } = await call("/openapi.json");
    expect(body.openapi).toBe("3.1.0");
    const paths = body.paths as Record<string, Json>;
    expect(Object.keys(paths)).toEqual(
      expect.arrayContaining([
        "/v1/sessions/{sid}/turns",
        "/v1/sessions/{sid}/events",
        "/v1/approvals",
        "/v1/trigger",
        "/readyz",
      ]),
    );
    const { schemas } = body.components as { schemas: Record<string, Json> };
    expect(JSON.stringify(schemas.TurnRequest)).toContain("on_busy");
    const named = [...JSON.stringify(body).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(
      (match) => match[1],
    );
    expect(Object.keys(schemas)).toEqual(expect.arrayContaining(named));
    expect(JSON.stringify(body)).not.toContain("#/$defs");
  });

  it("serves the console under a policy without inline code", async () => {
    const page = await fetch(`${harness.url}/`);
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'; script-src 'self'");
    const html = await page.text();
    expect(html).not.toMatch(/<script(?![^>]*src=)|\son\w+=|style="/);
    for (const asset of html.matchAll(/(?:src|href)="(\/console\/[^"]+)"/g)) {
      expect((await fetch(`${harness.url}${asset[1]}`)).status).toBe(200);
    }
  });

  it("refuses writes from a page of another origin and names rebound to loopback", async () => {
    const foreign = await post("/v1/sessions/o1/turns", { text: "x" }, { origin: "http://evil.test" });
    expect(foreign).toMatchObject({ status: 403, body: { code: "FORBIDDEN" } });
    const status = await new Promise((resolve, reject) => {
      const { port } = new URL(harness.url);
      const options = { host: "127.0.0.1", port, path: "/v1/workers", headers: { host: "rebound.test" } };
      httpRequest(options, (response) => resolve(response.statusCode))
        .on("error", reject)
        .end();
    });
    expect(status).toBe(403);
    expect(await operator.journal.lastSequence("o1")).toBe(0);
  });
});

describe("tokens", () => {
  it("guards every address by role and workspace, and takes a changed file", async () => {
    const file = join(tmpdir(), `tokens-${process.pid}`);
    await writeFile(file, "c-one one client\na-one one approver\nc-two two client\n");
    const guarded = await startHarness(nats, { FLOTILLA_TOKENS_FILE: file });
    const as = (token: string) => ({ authorization: `Bearer ${token}` });
    const get = (path: string, token: string) => call(path, { headers: as(token) }, guarded.url);
    try {
      expect(await call("/v1/sessions/k1", {}, guarded.url)).toMatchObject({
        status: 401,
        body: { code: "UNAUTHENTICATED" },
      });
      expect(await get("/v1/sessions/k1", "wrong")).toMatchObject({ status: 401 });
      expect((await fetch(`${guarded.url}/livez`)).status).toBe(200);
      const made = await post("/v1/sessions/k1/turns", { text: "x" }, as("c-one"), guarded.url);
      expect(made.status).toBe(202);
      expect(await get("/v1/sessions/k1", "c-one")).toMatchObject({ status: 200, body: { workspace: "one" } });
      expect(await get("/v1/sessions/k1", "c-two")).toMatchObject({ status: 404 });
      expect(await get("/v1/sessions/k1/events", "c-two")).toMatchObject({ status: 404 });
      expect(await get("/v1/workers", "a-one")).toMatchObject({ status: 403, body: { code: "FORBIDDEN" } });
      expect(await get("/v1/approvals", "c-one")).toMatchObject({ status: 403 });
      const other = await post("/v1/sessions/k2/turns", { text: "x", workspace: "two" }, as("c-one"), guarded.url);
      expect(other).toMatchObject({ status: 403, body: { field: "workspace" } });
      await writeFile(file, "o-all * operator\n");
      await until(async () => (await get("/v1/workers", "o-all")).status === 200, { what: "the new token counts" });
      expect(await get("/v1/sessions/k1", "c-one")).toMatchObject({ status: 401 });
    } finally {
      await guarded.stop();
    }
  });

  it("does not open on anything but loopback without tokens", async () => {
    await expect(startHarness(nats, { FLOTILLA_HOST: "0.0.0.0" })).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      message: expect.stringContaining("FLOTILLA_TOKENS_FILE"),
    });
  });
});
