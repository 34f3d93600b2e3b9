// One trace per turn (I15), over real processes and a real OTLP endpoint; and no secret in anything that leaves (I13).
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createEventLog } from "@flotilla/bus";
import { streamNames } from "@flotilla/contracts";
import {
  apiClient,
  type OtlpSpan,
  type ProcessFleet,
  type SentEvent,
  type StartedCollector,
  sessionEvents,
  startCollector,
  startFleet,
  startProcessFleet,
  until,
} from "@flotilla/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Client, newSession, textOf } from "./client.ts";

const orchestrator = "turn-orchestrator";
const canary = `sk-canary-${randomBytes(12).toString("hex")}`;
const script =
  'usage 1000 100\ncall demo::refund {"order":"A1","amount":5}\ncall demo::echo {"text":"x"}\n---\nsay done';

let collector: StartedCollector;
let vendor: Server;
const keysSeen: unknown[] = [];
let fleet: ProcessFleet;
let client: Client;

beforeAll(async () => {
  collector = await startCollector();
  vendor = await startVendor();
  fleet = await startProcessFleet({
    replicas: { [orchestrator]: 2 },
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: "50",
      LOG_LEVEL: "trace",
      ANTHROPIC_API_KEY: canary,
      ANTHROPIC_BASE_URL: `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`,
    },
  });
  client = new Client(fleet.urls[0] ?? "");
}, 120_000);
afterAll(async () => {
  await fleet?.stop();
  vendor?.close();
  await collector?.stop();
}, 30_000);

/** A vendor that repeats the key it was given in its refusal. */
async function startVendor(): Promise<Server> {
  const server = createServer((request, response) => {
    keysSeen.push(request.headers["x-api-key"]);
    response.writeHead(401, { "content-type": "application/json" });
    const message = `invalid x-api-key ${request.headers["x-api-key"]}`;
    response.end(JSON.stringify({ type: "error", error: { type: "authentication_error", message } }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

const ofTurn = (turnId: string): OtlpSpan[] => collector.spans.filter((span) => span.attributes["turn.id"] === turnId);
const named = (spans: readonly OtlpSpan[], name: string): OtlpSpan[] => spans.filter((span) => span.name === name);
/** The spans of a turn once its last step is among them, and for each call that was answered also the callee's. */
const whenExported = (turnId: string): Promise<OtlpSpan[]> =>
  until(
    () => {
      const spans = ofTurn(turnId);
      const isOver = spans.some((span) => ["stopped", "failed"].includes(String(span.attributes["turn.next_state"])));
      const parents = new Set(spans.map((span) => span.parentId));
      const isWhole = spans.every(
        ({ name, status, spanId }) => !name.startsWith("call ") || status === 2 || parents.has(spanId),
      );
      return isOver && isWhole ? spans : null;
    },
    { what: `the spans of ${turnId} have come`, timeoutMs: 20_000 },
  );

async function allow(to: Client, sid: string): Promise<void> {
  const [approval] = (await to.get(`/v1/approvals?session_id=${sid}`)).body.approvals;
  const decision = { decision: "allow", args_digest: approval.args_digest };
  await to.post(`/v1/sessions/${sid}/approvals/${approval.function_call_id}`, decision);
}

/** A turn with two tools, one of them after a person's word. */
async function playWithApproval(to: Client, headers: Record<string, string> = {}) {
  const sid = newSession();
  const body = { provider: "scripted", model: "play", text: script, message_id: "m-1" };
  const accepted = await to.post(`/v1/sessions/${sid}/turns`, body, headers);
  await to.reach(sid, "function_awaiting_approval");
  await allow(to, sid);
  await to.reach(sid, "stopped");
  return { sid, turnId: String(accepted.body.turn_id) };
}

async function eventsOf(to: Client, sid: string): Promise<SentEvent[]> {
  const stop = new AbortController();
  const events: SentEvent[] = [];
  for await (const event of sessionEvents(apiClient({ url: to.url }), sid, { lastEventId: "0", signal: stop.signal })) {
    events.push(event);
    if (event.event === "agent_end") stop.abort();
  }
  return events;
}

describe("a turn with a tool and an approval", () => {
  const traceId = randomBytes(16).toString("hex");
  let sid = "";
  let spans: OtlpSpan[] = [];
  let everything: OtlpSpan[] = [];
  beforeAll(async () => {
    const played = await playWithApproval(client, { traceparent: `00-${traceId}-00f067aa0ba902b7-01` });
    sid = played.sid;
    spans = await whenExported(played.turnId);
    const request = "POST /v1/sessions/{sid}/turns";
    everything = await until(
      () => {
        const found = collector.spans.filter((span) => span.traceId === traceId);
        return named(found, request).length > 0 && named(found, "call run::start").length > 0 ? found : null;
      },
      { what: "the front door's spans have come" },
    );
  }, 60_000);

  it("is one trace from the client's request to the last step, those after the approval included (I15)", () => {
    expect(new Set(spans.map((span) => span.traceId))).toEqual(new Set([traceId]));
    const steps = spans.filter((span) => span.name.startsWith("turn ")).map((span) => span.name);
    expect(new Set(steps)).toEqual(
      new Set([
        "turn provisioning",
        "turn assistant_streaming",
        "turn function_execute",
        "turn function_awaiting_approval",
      ]),
    );
    const afterwards = named(spans, "execute demo::refund");
    expect(afterwards).toHaveLength(1);
    expect(named(everything, "POST /v1/sessions/{sid}/turns")).toHaveLength(1);
  });

  it("has session.id and message.id on every span, and every parent but the client's (I15)", () => {
    for (const span of everything) {
      expect(span.attributes, span.name).toMatchObject({ "session.id": sid, "message.id": "m-1" });
    }
    const ids = new Set(everything.map((span) => span.spanId));
    const orphans = everything.filter((span) => !ids.has(span.parentId));
    expect(orphans.map((span) => span.name)).toEqual(["POST /v1/sessions/{sid}/turns"]);
  });

  it.each([
    ["harness", orchestrator],
    [orchestrator, "policy"],
    [orchestrator, "provider-scripted"],
    [orchestrator, "demo"],
    [orchestrator, "models-catalog"],
  ])("shows that %s called %s", (caller, callee) => {
    const byId = new Map(everything.map((span) => [span.spanId, span]));
    const edges = everything.filter((span) => span.service === callee && byId.get(span.parentId)?.service === caller);
    expect(edges.length).toBeGreaterThan(0);
    for (const edge of edges) {
      expect(byId.get(edge.parentId)?.attributes).toMatchObject({ "flotilla.worker": caller, "peer.service": callee });
    }
  });

  it("describes each model call by gen_ai attributes, and nothing by its text", () => {
    const [first] = named(spans, "execute provider::scripted::stream");
    expect(first?.attributes).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.system": "scripted",
      "gen_ai.request.model": "play",
      "gen_ai.response.finish_reasons": ["function_call"],
      "gen_ai.usage.input_tokens": 1000,
      "gen_ai.usage.output_tokens": 100,
    });
    expect(JSON.stringify(everything)).not.toMatch(/A1|amount|done/);
  });
});

describe("across turns, owners and workers", () => {
  it("links a turn to the one before it in its session", async () => {
    const sid = newSession();
    const turns: string[] = [];
    for (const text of ["say one", "say two"]) {
      turns.push(String((await client.start(sid, text)).body.turn_id));
      await client.reach(sid, "stopped");
      await whenExported(turns.at(-1) ?? "");
    }
    const [first, second] = turns.map((turn) => named(ofTurn(turn), "turn provisioning")[0]);
    expect(first?.links).toEqual([]);
    expect(second?.links).toEqual([
      { traceId: first?.traceId, attributes: { "flotilla.link": "previous_turn", "turn.id": turns[0] } },
    ]);
    expect(second?.traceId).not.toBe(first?.traceId);
  });

  it("goes on in the same trace when another replica takes the turn over", async () => {
    const sid = newSession();
    const turnId = String((await client.start(sid, 'call demo::slow {"ms":2500}\n---\nsay end')).body.turn_id);
    await until(async () => (await client.effects(sid)).length > 0, { what: "the tool runs" });
    const owner = (await fleet.bus.journal.tail(sid, { fresh: true }))?.commit.owner.instance ?? "";
    const entry = fleet.bus.registry.workers().find(({ manifest }) => manifest.worker === orchestrator);
    expect(entry?.instances.map(({ instance }) => instance)).toContain(owner);
    await until(() => named(ofTurn(turnId), "turn assistant_streaming")[0], { what: "the former owner's spans" });
    const replica = owner.startsWith(`${orchestrator}-1`) ? 1 : 0;
    await fleet.kill(orchestrator, replica);
    await client.reach(sid, "stopped", 20_000);
    const spans = await whenExported(turnId);
    await fleet.respawn(orchestrator, replica);
    expect(new Set(spans.map((span) => span.traceId)).size).toBe(1);
    const steps = spans.filter((span) => span.name.startsWith("turn "));
    expect(new Set(steps.map((span) => span.attributes["flotilla.instance"])).size).toBe(2);
    const taken = steps.filter((span) => span.attributes["flotilla.instance"] !== owner);
    expect(taken[0]?.attributes).toMatchObject({ "turn.state": "function_execute", "flotilla.takeovers": 1 });
    expect(named(spans, "execute demo::slow")).toHaveLength(2);
  }, 60_000);

  it("gives a turn that no request started a trace of its own, the same for all its steps", async () => {
    const sid = newSession();
    await fleet.bus.journal.publishInput(sid, "start", "m-bare", {
      session_id: sid,
      message_id: "m-bare",
      turn_id: "t-bare",
      workspace: "default",
      on_busy: "queue",
      messages: [{ role: "user", content: [{ type: "text", text: "call demo::echo {}\n---\nsay x" }], timestamp: 1 }],
      request: {
        provider: "scripted",
        model: "play",
        fallback: [],
        mode: null,
        system_prompt: "",
        functions: [],
        max_turns: null,
        approval_ttl_ms: 1_000,
        thinking_level: null,
      },
      traceparent: null,
    });
    await client.reach(sid, "stopped");
    const spans = await whenExported("t-bare");
    expect(new Set(spans.map((span) => span.traceId)).size).toBe(1);
    expect(named(spans, "execute demo::echo")).toHaveLength(1);
  });

  it("has spans of every worker that a turn passes, each with its own service.name", async () => {
    await client.trigger("session-tree::list", {});
    const expected = ["harness", orchestrator, "policy", "provider-scripted", "demo", "approval-gate", "session"];
    await until(() => expected.every((worker) => collector.spans.some((span) => span.service === worker)), {
      what: "every worker has sent spans",
    });
    for (const span of collector.spans) expect(span.attributes["flotilla.worker"], span.name).toBe(span.service);
  });

  it("leaves session.id out only where there is no session", () => {
    const without = collector.spans.filter((span) => span.attributes["session.id"] === undefined);
    const isFleetWide = /\/readyz|\/livez|\/v1\/(trigger|approvals)$|approval::list|session-tree::list|models::/;
    expect(without.map((span) => span.name).filter((name) => !isFleetWide.test(name))).toEqual([]);
  });
});

describe("a secret (I13)", () => {
  it("is in no span, log line, audit record, commit, event or answer, even when the vendor repeats it", async () => {
    const sid = newSession();
    const accepted = await client.start(sid, "hello", { provider: "anthropic", model: "claude-haiku-4-5" });
    expect(accepted.status).toBe(202);
    await client.reach(sid, "stopped");
    const turnId = String(accepted.body.turn_id);
    const spans = await whenExported(turnId);
    const [called] = named(spans, "execute provider::anthropic::stream");
    expect(called).toMatchObject({ status: 2, attributes: { "gen_ai.system": "anthropic" } });
    expect(named(spans, "execute auth::get_token")[0]?.service).toBe("auth-credentials");
    expect(keysSeen).toEqual([canary]);
    const messages = await client.messages(sid);
    expect(messages.at(-1)).toMatchObject({ stop_reason: "error", error_kind: "auth_expired" });
    const logs = join(fleet.home, "logs");
    const audit = await createEventLog(fleet.bus, streamNames.audit).read("audit.>");
    expect(audit.length).toBeGreaterThan(0);
    const left = {
      spans: Buffer.concat(collector.requests).toString("latin1"),
      logs: readdirSync(logs).map((file) => readFileSync(join(logs, file), "utf8")),
      audit,
      events: await eventsOf(client, sid),
      messages,
      commits: await fleet.bus.journal.readCommits(sid, 1),
    };
    expect(left.logs.join("")).toContain("auth::get_token");
    for (const [what, held] of Object.entries(left)) {
      const text = typeof held === "string" ? held : JSON.stringify(held);
      expect(text.includes(canary), what).toBe(false);
    }
  });
});

describe("with telemetry off", () => {
  it("the same turn has the same events and the same transcript (I15)", async () => {
    await using quiet = await startFleet();
    const silent = new Client(quiet.url);
    const [on, off] = [
      { to: client, played: await playWithApproval(client) },
      { to: silent, played: await playWithApproval(silent) },
    ];
    const told = async ({ to, played }: typeof on) => {
      const events = await eventsOf(to, played.sid);
      const messages = await to.messages(played.sid);
      return {
        events: events.map(({ event, data }) => [event, (data.new_value as { state?: string } | undefined)?.state]),
        messages: messages.map((message) => [
          message.role,
          textOf(message).replace(/RF-\w+/, "RF"),
          message.function_id,
          message.stop_reason,
        ]),
        state: (({ state, turn_count, usage }) => ({ state, turn_count, usage }))(await to.state(played.sid)),
      };
    };
    const [withTelemetry, without] = [await told(on), await told(off)];
    expect(without.state).toEqual(withTelemetry.state);
    expect(without.messages).toEqual(withTelemetry.messages);
    const lasting = (events: unknown[][]): unknown[][] => events.filter(([event]) => event !== "message_update");
    expect(lasting(without.events)).toEqual(lasting(withTelemetry.events));
  }, 60_000);
});
