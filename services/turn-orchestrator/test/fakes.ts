// One session's journal and everything an owner needs around it, in memory; nothing is announced unless the test says so.
import type { Bus, CommitExpectation, LiveMessage, OutcomeRecord } from "@flotilla/bus";
import {
  type Commit,
  type CommitKind,
  emptyView,
  type InputKind,
  type StartBody,
  type StoredCommit,
  type StoredInput,
} from "@flotilla/contracts";
import { createLogger } from "@flotilla/telemetry";
import { OrchestratorConfig } from "../src/config.ts";
import { aRequest } from "../src/domain/domain.builders.ts";
import type { OutsidePorts } from "../src/engine/ports.ts";
import { type AnchorHandle, SessionRunner } from "../src/engine/session-runner.ts";
import type { EngineDeps } from "../src/engine/types.ts";

type Call = (functionId: string, payload: unknown) => Promise<unknown>;

export class FakeSession {
  readonly id = "s1";
  readonly inputs: StoredInput[] = [];
  readonly commits: StoredCommit[] = [];
  readonly outcomes = new Map<string, { record: OutcomeRecord; revision: number }>();
  readonly cancelled: string[] = [];
  readonly calls: string[] = [];
  call: Call = () => new Promise(() => {});
  readonly ports: { -readonly [K in keyof OutsidePorts]: OutsidePorts[K] };
  readonly deps: EngineDeps;
  announce: ((message: LiveMessage) => void) | null = null;
  #seq = 0;

  constructor(over: Partial<Record<keyof Bus, unknown>> = {}) {
    this.ports = {
      checkPolicy: async () => ({ decision: "allow", rule_id: "test" }),
      model: async () => null,
      armTimer: async () => {},
      decideApproval: async (_, decision) => decision.decision,
      deadLetter: async () => {},
    };
    const bus = { ...this.#bus(), ...over } as unknown as Bus;
    this.deps = {
      bus,
      config: OrchestratorConfig.parse({}),
      logger: createLogger({ level: "silent", name: "test" }),
      now: () => Date.now(),
      random: () => 0.5,
      ports: this.ports,
      metrics: { committed: () => {}, takenOver: () => {} },
    };
  }

  get tail(): StoredCommit | null {
    return this.commits.at(-1) ?? null;
  }

  input(kind: InputKind, body: unknown, id = `i${this.#seq + 1}`): StoredInput {
    const input: StoredInput = { seq: ++this.#seq, kind, id, digest: null, body, at: 0 };
    this.inputs.push(input);
    return input;
  }

  start(id: string, over: Partial<StartBody> = {}): StoredInput {
    const messages = [{ role: "user" as const, content: [{ type: "text" as const, text: id }], timestamp: 1 }];
    const body: StartBody = {
      session_id: this.id,
      message_id: id,
      turn_id: `t-${id}`,
      workspace: "default",
      on_busy: "queue",
      messages,
      request: aRequest(),
      traceparent: null,
      ...over,
    };
    return this.input("start", body, id);
  }

  /** A runner that owns the session as its newest commit has it. */
  runner(handle: AnchorHandle, takeovers = 0): SessionRunner {
    const view = emptyView(this.id);
    return new SessionRunner(this.deps, view, handle, { anchorSeq: 1, epoch: 1, takeovers }, null);
  }

  async commit(kind: CommitKind, commit: Commit, expect: CommitExpectation) {
    const tailSeq = this.tail?.seq ?? 0;
    const isFresh = expect.on === "commits" ? expect.seq === tailSeq : expect.seq === this.#seq;
    if (!isFresh) return { kind: "stale" as const };
    const stored: StoredCommit = { seq: ++this.#seq, kind, commit: structuredClone(commit) };
    this.commits.push(stored);
    return { kind: "stored" as const, seq: stored.seq };
  }

  #bus() {
    const journal = {
      shards: 1,
      readInputs: async (_: string, after: number) => this.inputs.filter(({ seq }) => seq > after),
      readInputAt: async (seq: number) => this.inputs.find((input) => input.seq === seq) ?? null,
      readCommits: async (_: string, from: number) => this.commits.filter(({ seq }) => seq >= from),
      tail: async () => this.tail,
      commit: (kind: CommitKind, commit: Commit, expect: CommitExpectation) => this.commit(kind, commit, expect),
      watch: (_: string, handler: (message: LiveMessage) => void) => {
        this.announce = handler;
        return { ready: async () => {}, stop: () => {} };
      },
    };
    const outcomes = {
      read: async (key: string) => this.outcomes.get(key) ?? null,
      write: async (key: string, record: OutcomeRecord, expected: number) => {
        if ((this.outcomes.get(key)?.revision ?? 0) !== expected) return null;
        this.outcomes.set(key, { record, revision: expected + 1 });
        return expected + 1;
      },
    };
    return {
      worker: "turn-orchestrator",
      instance: "o-1",
      connected: true,
      reconnectedAt: 0,
      journal,
      outcomes,
      registry: { resolve: () => null, functions: () => [], workers: () => [], isInstanceLive: () => false },
      nc: {
        publish: (subject: string) => this.cancelled.push(subject),
        request: async () => ({}),
        isClosed: () => false,
      },
      onReconnect: () => () => {},
      deltas: { read: async () => [] },
      callId: (functionId: string, payload: unknown) => {
        this.calls.push(functionId);
        return this.call(functionId, payload);
      },
    };
  }
}

/** An anchor as the consumer delivered it; tells what became of it. */
export function aHandle(): AnchorHandle & { readonly said: string[] } {
  const said: string[] = [];
  return {
    said,
    ack: () => void said.push("ack"),
    nak: (delayMs) => void said.push(`nak ${delayMs}`),
    working: () => void said.push("working"),
  };
}
