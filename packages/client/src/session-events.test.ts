// Behaviour of a session's events over broken connections, against a front door that breaks them on purpose.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { ApiError, apiClient, sessionEvents, UnreachableError } from "./index.ts";

const servers: ReturnType<typeof createServer>[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function frontDoor(answer: (request: IncomingMessage, response: ServerResponse) => unknown): Promise<string> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const event = (id: number): string => `id: ${id}\nevent: tick\ndata: {"type":"tick","n":${id}}\n\n`;

function problem(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/problem+json" }).end(JSON.stringify(body));
}

describe("sessionEvents", () => {
  it("goes on after a broken connection from the last id that it saw", async () => {
    const asked: (string | undefined)[] = [];
    const url = await frontDoor((request, response) => {
      const from = request.headers["last-event-id"]?.toString();
      asked.push(from);
      response.writeHead(200, { "content-type": "text/event-stream" });
      const first = Number(from ?? 0) + 1;
      response.write(event(first) + event(first + 1), () => response.destroy());
    });
    const seen: string[] = [];
    for await (const { id, data } of sessionEvents(apiClient({ url }), "s")) {
      seen.push(`${id}:${data.n}`);
      if (seen.length === 5) break;
    }
    expect(seen).toEqual(["1:1", "2:2", "3:3", "4:4", "5:5"]);
    expect(asked).toEqual([undefined, "2", "4"]);
  });

  it("throws what the front door refuses, with its code", async () => {
    const url = await frontDoor((_request, response) =>
      problem(response, 404, { code: "SESSION_NOT_FOUND", detail: "no" }),
    );
    const read = async (): Promise<void> => {
      for await (const _ of sessionEvents(apiClient({ url }), "s"));
    };
    await expect(read()).rejects.toMatchObject({ status: 404, code: "SESSION_NOT_FOUND", message: "no" });
  });

  it("looks for a lost front door only for a while", async () => {
    const url = await frontDoor(() => {});
    servers.splice(0).map((server) => server.close());
    const read = async (): Promise<void> => {
      for await (const _ of sessionEvents(apiClient({ url }), "s", { reconnectMs: 300 }));
    };
    await expect(read()).rejects.toThrow(UnreachableError);
  });

  it("moves to the replica that it is told to after a loss", async () => {
    const second = await frontDoor((request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(event(Number(request.headers["last-event-id"]) + 1));
    });
    const first = await frontDoor((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(event(1), () => response.destroy());
    });
    const seen: string[] = [];
    const options = { onReconnect: () => apiClient({ url: second }) };
    for await (const { id } of sessionEvents(apiClient({ url: first }), "s", options)) {
      seen.push(id);
      if (seen.length === 2) break;
    }
    expect(seen).toEqual(["1", "2"]);
  });

  it("ends quietly when its signal aborts, and closes the connection (I14)", async () => {
    const closed = Promise.withResolvers<void>();
    const url = await frontDoor((request, response) => {
      request.once("close", () => closed.resolve());
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(event(1));
    });
    const controller = new AbortController();
    const seen: string[] = [];
    for await (const { id } of sessionEvents(apiClient({ url }), "s", { signal: controller.signal })) {
      seen.push(id);
      controller.abort();
    }
    expect(seen).toEqual(["1"]);
    await closed.promise;
  });
});

describe("apiClient", () => {
  it("sends the token and the body, and reads the answer", async () => {
    const url = await frontDoor(async (request, response) => {
      const chunks = await Array.fromAsync(request);
      response.end(JSON.stringify({ token: request.headers.authorization, body: JSON.parse(chunks.join("")) }));
    });
    const answer = await apiClient({ url: `${url}/`, token: "t" }).post("/x", { a: 1 });
    expect(answer).toEqual({ token: "Bearer t", body: { a: 1 } });
  });

  it("makes an error of a problem document, and of any other refusal", async () => {
    const url = await frontDoor((request, response) => {
      if (request.url === "/problem") problem(response, 400, { code: "INVALID_INPUT", detail: "odd", field: "text" });
      else response.writeHead(502).end("<html>bad gateway</html>");
    });
    const api = apiClient({ url });
    await expect(api.get("/problem")).rejects.toMatchObject({ code: "INVALID_INPUT", message: "odd", field: "text" });
    await expect(api.get("/page")).rejects.toThrow(ApiError);
    await expect(api.get("/page")).rejects.toMatchObject({ status: 502, code: "HTTP_502" });
  });
});
