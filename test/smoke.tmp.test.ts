import { providerStream, demoEcho, modelsGet, messagesOf, foldCommits } from "@flotilla/contracts";
import { startNats, until } from "@flotilla/testkit";
import { defineWorker, implement, runWorkers } from "@flotilla/worker";
import { connectBus, acceptStart, acceptAbort } from "@flotilla/bus";
import { createLogger } from "@flotilla/telemetry";
import { definition as orchestrator } from "../services/turn-orchestrator/src/worker.ts";
import { definition as policy } from "../services/policy/src/worker.ts";
import { it } from "vitest";
it("smoke", async () => {
  await using nats = await startNats();
  const provider = { name: "provider-scripted", build: () => defineWorker({ name: "provider-scripted", version: "0.0.1", functions: [implement(providerStream("scripted"), async (ctx, req) => {
    const last = req.messages.at(-1);
    const content = last?.role === "user" ? [{type:"function_call" as const, id:"v1", function_id:"demo::echo", arguments:{text:"x"}}] : [{type:"text" as const, text:"done"}];
    return { message: { role: "assistant", content, stop_reason: "end", model: req.model, provider: "scripted", timestamp: Date.now(), usage: {input:1, output:2} }, streamed: false };
  })] }) };
  const demo = { name: "demo", build: () => defineWorker({ name: "demo", version: "0.0.1", functions: [implement(demoEcho, (_c, r) => ({ text: r.text }))] }) };
  const fleet = await runWorkers({ definitions: [provider, demo, policy, orchestrator], env: { NATS_URL: nats.address, NATS_CREDENTIALS_FILE: nats.credentialsFile, LOG_LEVEL: "info", FLOTILLA_HOME: "/tmp/fh" } } as never);
  await (fleet as never as {ready(): Promise<void>}).ready();
  const bus = await connectBus({ url: nats.url, worker: "operator", instance: "op", logger: createLogger({ level: "error", name: "t" }) });
  for (let i = 0; i < 20; i++) {
    const t0 = performance.now();
    await acceptStart(bus, { session_id: "s"+i, text: "hi" } as never, { defaults: { provider: "scripted", model: "play", approvalTtlMs: 1000 } });
    const t1 = performance.now();
    await until(async () => (await bus.journal.tail("s"+i))?.commit.state?.state === "stopped", { what: "stopped", everyMs: 1 });
    process.stdout.write(`${(t1-t0).toFixed(1)} ${(performance.now()-t0).toFixed(1)}\n`);
  }
  const commits = await bus.journal.readCommits("s0", 1);
  process.stdout.write(JSON.stringify(commits.map(c => [c.kind, c.commit.state?.state, c.commit.events.map(e=>e.type)]), null, 0) + "\n");
  process.stdout.write(JSON.stringify(messagesOf(foldCommits("s0", commits))) + "\n");
  await bus.close();
  await fleet.stop();
}, 30000);
