// The same servers in containers, for machines that have Docker and no binaries. Docker is only looked for when needed.
import { type Credentials, renderNatsConfig } from "@flotilla/bus";
import type { GenericContainer } from "testcontainers";
import type { TestServer } from "./child-server.ts";
import { until } from "./until.ts";

const natsImage = "nats:2.12-alpine";
const redisImage = "redis:7-alpine";

export function startNatsContainer(
  base: { credentials: Credentials; shards: number },
  port: number,
  isReady: () => Promise<boolean>,
): Promise<TestServer> {
  const content = renderNatsConfig({ ...base, port: 4222, host: "0.0.0.0", storeDir: "/data" });
  return startContainer(natsImage, { container: 4222, host: port }, isReady, (container) =>
    container
      .withCopyContentToContainer([{ content, target: "/etc/nats/nats.conf" }])
      .withCommand(["-c", "/etc/nats/nats.conf"]),
  );
}

export function startRedisContainer(port: number, isReady: () => Promise<boolean>): Promise<TestServer> {
  return startContainer(redisImage, { container: 6379, host: port }, isReady, (container) =>
    container.withCommand(["redis-server", "--save", "", "--appendonly", "yes"]),
  );
}

async function startContainer(
  image: string,
  port: { container: number; host: number },
  isReady: () => Promise<boolean>,
  configure: (container: GenericContainer) => GenericContainer,
): Promise<TestServer> {
  const { GenericContainer, getContainerRuntimeClient } = await import("testcontainers");
  const started = await configure(new GenericContainer(image).withExposedPorts(port).withAutoRemove(false)).start();
  const client = await getContainerRuntimeClient();
  const handle = client.container.getById(started.getId());
  const ready = (): Promise<boolean> => until(isReady, { what: `${image} answers`, timeoutMs: 20_000 });
  const inspect = async (): Promise<{ pid: number; isRunning: boolean }> => {
    const { State } = await handle.inspect();
    return { pid: State.Pid, isRunning: State.Running };
  };
  await ready();
  let { pid } = await inspect();
  return {
    get pid() {
      return pid;
    },
    async kill(signal) {
      if (signal === "SIGSTOP") return handle.pause();
      if (signal === "SIGCONT") return handle.unpause();
      if ((await inspect()).isRunning) await handle.kill({ signal });
      await until(async () => !(await inspect()).isRunning, { what: `${image} ends` });
    },
    async restart() {
      if ((await inspect()).isRunning) await handle.kill({ signal: "SIGKILL" });
      await handle.start();
      await ready();
      pid = (await inspect()).pid;
    },
    async stop() {
      await started.stop({ remove: true, removeVolumes: true, timeout: 0 });
    },
  };
}
