import { startBenchFleet } from "./fleet.ts";
import { startUpstream, turnBody } from "./model.ts";
import { nineStepTurn } from "./session.ts";
const up = await startUpstream();
const fleet = await startBenchFleet({ mode: "composite", upstreamUrl: up.url });
const t = await nineStepTurn(fleet.url, turnBody("scripted", { tools: 4 }));
for (let seq = 1; seq < 40; seq++) {
  const m = await fleet.jsm.streams.getMessage("TURN_STEP_0", { seq }).catch(() => null);
  if (m === null) break;
  console.log(seq, m.subject, m.data.length, [...m.header.keys()].map((k) => `${k}=${m.header.get(k)}`).join(" "));
  if ([1,2,3, 4, 5].includes(seq)) console.log(new TextDecoder().decode(m.data));
}
await fleet.stop(); up.stop();
