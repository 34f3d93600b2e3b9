// The harness as a value: the front door of the fleet.
import { type MetricName, metricNames } from "@flotilla/telemetry";
import { type Background, defineWorker, type Runtime, type WorkerDefinition } from "@flotilla/worker";
import { Gauge } from "prom-client";
import { createDoors } from "./adapters/bus-doors.ts";
import { createEventSource } from "./adapters/event-pump.ts";
import { createReadiness } from "./adapters/fleet-readiness.ts";
import { createSessions } from "./adapters/journal-sessions.ts";
import { createAuthenticator, readTokens } from "./adapters/tokens-file.ts";
import { UiSubscriptions } from "./adapters/ui-subscriptions.ts";
import { type HarnessConfig, harnessConfig } from "./config.ts";
import { makeTrigger } from "./functions/trigger.ts";
import { makeUiSubscribe, makeUiUnsubscribe } from "./functions/ui-subscribe.ts";
import { buildServer, type HttpServer } from "./http/server.ts";
import { version } from "./version.ts";

export const definition: WorkerDefinition = {
  name: "harness",
  checkEnv(env) {
    const { tokensFile } = harnessConfig(env);
    if (tokensFile !== undefined) readTokens(tokensFile);
  },
  build(runtime) {
    const config = harnessConfig(runtime.env);
    const doors = createDoors(runtime.bus, config);
    const events = createEventSource(runtime.bus, config);
    const subscriptions = new UiSubscriptions(runtime.bus, events);
    return defineWorker({
      name: "harness",
      version,
      functions: [makeTrigger(doors), makeUiSubscribe(subscriptions), makeUiUnsubscribe(subscriptions)],
      background: [pushes(subscriptions), frontDoor(runtime, config)],
      // A stream is handed over at once: its reader comes back to another replica.
      drainSeconds: 5,
    });
  },
};

function pushes(subscriptions: UiSubscriptions): Background {
  return { name: "ui-pushes", start: async () => {}, stop: async () => subscriptions.stop() };
}

function frontDoor(runtime: Runtime, config: HarnessConfig): Background {
  const { bus, logger } = runtime;
  const auth = createAuthenticator(config.tokensFile, logger);
  const readiness = createReadiness(bus, { provider: config.defaults.provider, firstWorkers: config.readyWorkers });
  let server: HttpServer | null = null;
  countStreams(runtime, () => server?.openStreams ?? 0);
  return {
    name: "http",
    async start() {
      server = buildServer({
        bus,
        config,
        logger,
        readiness,
        sessions: createSessions(bus),
        doors: createDoors(bus, config),
        events: createEventSource(bus, config),
        auth,
      });
      const address = await server.app.listen({ host: config.host, port: config.port });
      logger.info("the front door is open", { address });
    },
    async stop() {
      await server?.close();
    },
  };
}

function countStreams({ metrics }: Runtime, count: () => number): void {
  const name: MetricName = "flotilla_event_streams";
  new Gauge({
    name,
    help: metricNames[name].description,
    registers: [metrics],
    collect() {
      this.set(count());
    },
  });
}
