import { startBenchFleet } from "./fleet.ts";
import { measureFirstToken } from "./first-token.ts";
import { startUpstream } from "./model.ts";
import { measureTurns } from "./turns.ts";
const up = await startUpstream();
const fleet = await startBenchFleet({ mode: (process.argv[2] as "split") ?? "composite", upstreamUrl: up.url });
const warm = async (model: "scripted"|"upstream") => measureTurns(fleet, { model, sessions: 4, forMs: 2500 });
await warm("scripted"); await warm("upstream");
const t = await measureFirstToken(fleet, { upstreamUrl: up.url, sessions: 1, rounds: 40, periodMs: 4000 });
console.log("ttft", JSON.stringify(t));
for (const c of [1, 8]) { const r = await measureTurns(fleet, { model: "scripted", sessions: c, forMs: 3000 });
console.log(c, JSON.stringify(r.toEnd), r.turnsPerSecond, JSON.stringify(r.cpuMsPerTurnByProcess), "other", r.otherCpus);}
await fleet.stop();
up.stop();
