// A projector in a process of its own, for tests that kill it.
import { connectBus } from "@flotilla/bus";
import { connectState } from "@flotilla/state";
import { createProjector } from "../src/adapters/projector.ts";
import { createRepair } from "../src/adapters/repair.ts";
import { silent } from "./support.ts";

const { TEST_NATS_URL: natsUrl = "", TEST_REDIS_URL: redisUrl = "" } = process.env;
const bus = await connectBus({ url: natsUrl, worker: "session", instance: "child", logger: silent });
const state = connectState({ url: redisUrl, logger: silent });
const repair = createRepair({ bus, state, logger: silent });
const onProjected = (): void => void process.stdout.write(".");
await createProjector({ bus, state, repair, logger: silent, onProjected }).start();
