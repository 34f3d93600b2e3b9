// Decisions through whole gates on a real bus: bound, exactly once, durable, from a cold start.
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Bus } from "@flotilla/bus";
import { type ApprovalBody, randomId, streamNames } from "@flotilla/contracts";
import { type StartedNats, startNats, until } from "@flotilla/testkit";
import type { WorkersHandle } from "@flotilla/worker";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { aTurn, digestOf } from "./builders.ts";
import { codeOf, commit, connectOperator, decide, gateEnv, park, startGate } from "./support.ts";

let nats: StartedNats;
let bus: Bus;
let sid: string;
const call = { id: "c1", args: { order: "A1", amount: 5 } };

const storedDecision = (callId: string) => bus.journal.readInput<ApprovalBody>(sid, "approval", callId);
const storeDecision = (decision: ApprovalBody["decision"], callId = "c1") =>
  bus.journal.publishInput<ApprovalBody>(sid, "approval", callId, {
    function_call_id: callId,
    args_digest: digestOf(call),
    decision,
    reason: null,
    decided_by: "turn-orchestrator",
  });

beforeAll(async () => {
  nats = await startNats();
  bus = await connectOperator(nats);
});
afterAll(async () => {
  await bus.close();
  await nats.stop();
});
beforeEach(() => {
  sid = `s-${randomId()}`;
});

describe("with two replicas", () => {
  let gates: WorkersHandle[];
  beforeAll(async () => {
    gates = [await startGate(nats), await startGate(nats)];
  });
  afterAll(async () => {
    await Promise.all(gates.map((gate) => gate.stop()));
  });

  it("stores a decision before it answers, with who decided and why (I1)", async () => {
    await park(bus, sid, [call]);
    expect(await decide(bus, sid, call, { decision: "deny", reason: "too much" })).toEqual({ ok: true });
    expect((await storedDecision("c1"))?.body).toEqual({
      function_call_id: "c1",
      args_digest: digestOf(call),
      decision: "deny",
      reason: "too much",
      decided_by: "client",
      decision_id: expect.any(String),
    });
  });

  it("lets exactly one of 20 concurrent decisions win; the others learn that it is decided", async () => {
    await park(bus, sid, [call]);
    const codes = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        codeOf(decide(bus, sid, call, { decision: n % 2 ? "allow" : "deny", reason: `voter ${n}` })),
      ),
    );
    expect(codes.filter((code) => code === "ok")).toHaveLength(1);
    expect(codes.filter((code) => code === "APPROVAL_DECIDED")).toHaveLength(19);
    const winner = codes.indexOf("ok");
    expect((await storedDecision("c1"))?.body).toMatchObject({
      decision: winner % 2 ? "allow" : "deny",
      reason: `voter ${winner}`,
    });
  });

  it("reaches the call that is named and no other of a parallel batch (field: langgraph#6533)", async () => {
    const calls = [1, 2, 3].map((n) => ({ id: `c${n}`, args: { order: "same", amount: 1 } }));
    await park(bus, sid, calls);
    const [first, second, third] = calls as [typeof call, typeof call, typeof call];
    await decide(bus, sid, third, { decision: "deny" });
    await decide(bus, sid, first, { decision: "allow" });
    expect((await storedDecision("c1"))?.body).toMatchObject({ function_call_id: "c1", decision: "allow" });
    expect((await storedDecision("c3"))?.body).toMatchObject({ function_call_id: "c3", decision: "deny" });
    expect(await storedDecision("c2")).toBeNull();
    expect(await decide(bus, sid, second)).toEqual({ ok: true });
  });

  it("takes a decision while siblings of the call still run", async () => {
    await park(bus, sid, [{ id: "c0", status: "running" }, call], "run");
    expect(await decide(bus, sid, call)).toEqual({ ok: true });
    expect(await codeOf(decide(bus, sid, { id: "c0" }))).toBe("APPROVAL_NOT_FOUND");
  });

  it("refuses a wrong digest and stores nothing", async () => {
    await park(bus, sid, [call]);
    const other = digestOf({ ...call, args: { order: "A1", amount: 5_000 } });
    for (const args_digest of [other, digestOf(call).toUpperCase(), "sha256:"]) {
      expect(await codeOf(decide(bus, sid, call, { args_digest }))).toBe("APPROVAL_DIGEST_MISMATCH");
    }
    expect(await storedDecision("c1")).toBeNull();
    expect(await decide(bus, sid, call)).toEqual({ ok: true });
  });

  it.each([
    ["a missing digest", { args_digest: undefined }, "args_digest"],
    ["an empty digest", { args_digest: "" }, "args_digest"],
    ["an odd decision", { decision: "aborted" }, "decision"],
    ["a missing decision", { decision: undefined }, "decision"],
    ["an odd call id", { function_call_id: "a/b" }, "function_call_id"],
    ["a missing session", { session_id: undefined }, "session_id"],
  ])("refuses %s and names the field", async (_title, wrong, field) => {
    await park(bus, sid, [call]);
    const good = { session_id: sid, function_call_id: "c1", decision: "allow", args_digest: digestOf(call) };
    await expect(bus.callId("approval::resolve", { ...good, ...wrong })).rejects.toMatchObject({
      code: "INVALID_INPUT",
      field,
    });
    expect(await storedDecision("c1")).toBeNull();
  });

  it("tells an unknown session from an unknown call", async () => {
    expect(await codeOf(decide(bus, sid, call))).toBe("SESSION_NOT_FOUND");
    await bus.journal.publishInput(sid, "wake", "w1", {});
    expect(await codeOf(decide(bus, sid, call))).toBe("APPROVAL_NOT_FOUND");
    await park(bus, sid, [call]);
    expect(await codeOf(decide(bus, sid, { ...call, id: "c9" }))).toBe("APPROVAL_NOT_FOUND");
  });

  it.each([
    ["allow", "APPROVAL_DECIDED"],
    ["deny", "APPROVAL_DECIDED"],
    ["expired", "APPROVAL_EXPIRED"],
    ["aborted", "APPROVAL_REVOKED"],
  ] as const)("answers a call that is already %s with %s, during its turn and after it", async (decision, code) => {
    await park(bus, sid, [call]);
    await storeDecision(decision);
    expect(await codeOf(decide(bus, sid, call))).toBe(code);
    await commit(bus, { session_id: sid, state: aTurn(sid, [], "stopped") }, "idle");
    expect(await codeOf(decide(bus, sid, call))).toBe(code);
    await expect(decide(bus, sid, call)).rejects.toMatchObject({
      httpStatus: 409,
      details: { decision, decided_by: "turn-orchestrator" },
    });
    expect((await storedDecision("c1"))?.body.decided_by).toBe("turn-orchestrator");
  });

  it("refuses a decision past its time, also before the orchestrator has expired it, and keeps an earlier one", async () => {
    const late = { ...call, expiresAt: Date.now() - 1 };
    await park(bus, sid, [late]);
    expect(await codeOf(decide(bus, sid, late))).toBe("APPROVAL_EXPIRED");
    expect(await storedDecision("c1")).toBeNull();
    await storeDecision("allow");
    expect(await codeOf(decide(bus, sid, late))).toBe("APPROVAL_DECIDED");
  });

  it("lets no agent decide, whatever policy says", async () => {
    await park(bus, sid, [call]);
    expect(await codeOf(decide(bus, sid, call, { caller: "agent" }))).toBe("FORBIDDEN");
    expect(await storedDecision("c1")).toBeNull();
  });

  it("writes one audit record for a decision and none for a refusal", async () => {
    await park(bus, sid, [call]);
    await codeOf(decide(bus, sid, call, { args_digest: "sha256:0" }));
    await decide(bus, sid, call, { decision: "deny", reason: "no" });
    await codeOf(decide(bus, sid, call));
    const messages = await auditOf(sid);
    expect(messages).toEqual([
      {
        action: "approval.decided",
        session_id: sid,
        function_call_id: "c1",
        function_id: "demo::refund",
        decision: "deny",
        decided_by: "client",
        args_digest: digestOf(call),
        reason: "no",
        at: expect.any(Number),
      },
    ]);
  });
});

describe("after a SIGKILL", () => {
  async function spawnGate(): Promise<ChildProcess> {
    const instances = (): number =>
      bus.registry.workers().find(({ manifest }) => manifest.worker === "approval-gate")?.instances.length ?? 0;
    const before = instances();
    const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));
    const child = spawn(process.execPath, [main], { env: { ...gateEnv(nats) }, stdio: "ignore" });
    await until(() => instances() > before, { what: "the gate process is registered" });
    return child;
  }
  async function kill(child: ChildProcess): Promise<void> {
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
  }

  it("decides in a process that never saw the question (field: mastra#18031)", async () => {
    const first = await spawnGate();
    await park(bus, sid, [call, { id: "c2" }]);
    await decide(bus, sid, { id: "c2" }, { decision: "deny" });
    await kill(first);
    const second = await spawnGate();
    try {
      const wrong = { args_digest: digestOf({ id: "c2" }) };
      expect(await codeOf(decide(bus, sid, call, wrong))).toBe("APPROVAL_DIGEST_MISMATCH");
      expect(await decide(bus, sid, call)).toEqual({ ok: true });
      expect(await codeOf(decide(bus, sid, { id: "c2" }))).toBe("APPROVAL_DECIDED");
    } finally {
      await kill(second);
    }
  });
});

async function auditOf(sessionId: string): Promise<unknown[]> {
  const found: unknown[] = [];
  const { state } = await bus.jsm.streams.info(streamNames.audit);
  for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
    const message = await bus.jsm.streams.getMessage(streamNames.audit, { seq });
    const record = message?.json<{ session_id: string }>();
    if (record?.session_id === sessionId) found.push(record);
  }
  return found;
}
