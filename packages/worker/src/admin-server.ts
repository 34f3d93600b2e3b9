// The admin port of a process: /livez, /readyz, /metrics. Fixed paths, no parameters, nothing secret.
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { FlotillaError } from "@flotilla/errors";
import type { Logger } from "@flotilla/telemetry";
import type { Registry as MetricsRegistry } from "prom-client";
import type { Liveness, Readiness } from "./health.ts";

export interface AdminOptions {
  readonly port: number;
  readonly host: string;
  readonly metrics: MetricsRegistry;
  readonly readiness: () => Promise<Readiness>;
  readonly liveness: () => Promise<Liveness>;
  readonly logger: Logger;
}

export interface AdminServer {
  readonly port: number;
  close(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

export async function startAdminServer(options: AdminOptions): Promise<AdminServer> {
  const server = createServer((request, response) => {
    respond(options, request.method ?? "GET", request.url ?? "/").then(
      (answer) => send(response, answer),
      (error: unknown) => {
        options.logger.error("an admin request failed", { error });
        send(response, json(500, { status: "failed" }));
      },
    );
  });
  await listen(server, options);
  const { port } = server.address() as AddressInfo;
  return {
    port,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

async function respond(options: AdminOptions, method: string, url: string): Promise<Answer> {
  if (method !== "GET" && method !== "HEAD") return json(405, { status: "method not allowed" });
  switch (url.split("?", 1)[0]) {
    case "/livez": {
      const live = await options.liveness();
      return json(live.isLive ? 200 : 503, { status: live.isLive ? "live" : "wedged", reasons: live.reasons });
    }
    case "/readyz": {
      const report = await options.readiness();
      return json(report.status === "not_ready" ? 503 : 200, report);
    }
    case "/metrics":
      return { status: 200, type: options.metrics.contentType, body: await options.metrics.metrics() };
    default:
      return json(404, { status: "not found", paths: ["/livez", "/readyz", "/metrics"] });
  }
}

function json(status: number, body: unknown): Answer {
  return { status, type: "application/json", body: `${JSON.stringify(body)}\n` };
}

function send(response: ServerResponse, answer: Answer): void {
  response.writeHead(answer.status, { "content-type": answer.type, "cache-control": "no-store" });
  response.end(answer.body);
}

function listen(server: Server, options: AdminOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const message = `ADMIN_PORT ${options.port} on ${options.host} cannot be used (${cause.code ?? "unknown error"})`;
      reject(new FlotillaError("CONFIG_INVALID", message, { cause }));
    });
    server.listen(options.port, options.host, resolve);
  });
}
