export { apiClient, type SentEvent, sessionEvents } from "@flotilla/client";
export { aCommit, aTurnRecord, awaitingCall, userEntry } from "./a-commit.ts";
export { findBinary, freePort } from "./child-server.ts";
export { type FakeClock, fakeClock } from "./fake-clock.ts";
export { type ProcessFleet, type ProcessFleetOptions, startProcessFleet } from "./process-fleet.ts";
export { operatorBus, type StartedFleet, type StartFleetOptions, startFleet } from "./start-fleet.ts";
export { fleetWorkers, type StartedNats, type StartNatsOptions, startNats } from "./start-nats.ts";
export { type StartedRedis, startRedis } from "./start-redis.ts";
export { type UntilOptions, until } from "./until.ts";
