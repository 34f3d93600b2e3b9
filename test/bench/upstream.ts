// A model vendor for measuring: chat completions that stream what the newest user text asks for.
//   tools=N   results of tools wanted before the final text (default 0)
//   tokens=M  deltas of the final text (default 5)
//   ttft=T    ms before the first delta (default 0); delay=D  ms between two deltas (default 0)
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface Message {
  readonly role: string;
  readonly content?: string | { readonly type: string; readonly text?: string }[] | null;
}
interface Body {
  readonly model: string;
  readonly messages: readonly Message[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
}

const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };

function textOf(message: Message | undefined): string {
  const content = message?.content ?? "";
  return typeof content === "string" ? content : content.map((part) => part.text ?? "").join(" ");
}

function wish(text: string, name: string, fallback: number): number {
  const found = new RegExp(`(?:^|\\s)${name}=(\\d+)`).exec(text);
  return found === null ? fallback : Number(found[1]);
}

function deltasFor(body: Body, text: string): { deltas: unknown[]; finish: string } {
  const lastUser = body.messages.findLastIndex((message) => message.role === "user");
  const results = body.messages.slice(lastUser + 1).filter((message) => message.role === "tool").length;
  const tool = body.tools?.[0]?.function.name;
  if (results < wish(text, "tools", 0) && tool !== undefined) {
    const call = { name: tool, arguments: JSON.stringify({ text: `step ${results + 1}` }) };
    const call_id = `call_${results + 1}`;
    return {
      deltas: [{ tool_calls: [{ index: 0, id: call_id, type: "function", function: call }] }],
      finish: "tool_calls",
    };
  }
  const words = Array.from({ length: wish(text, "tokens", 5) }, (_, index) => ({ content: `word${index} ` }));
  return { deltas: words, finish: "stop" };
}

/** Each delta at its own time from the start, so that a late one does not push back those after it. */
function play(response: ServerResponse, deltas: readonly string[], pace: { ttft: number; delay: number }): void {
  const startedAt = performance.now();
  let next = 0;
  const send = (): void => {
    if (response.destroyed) return;
    const elapsed = performance.now() - startedAt;
    let due = "";
    while (next < deltas.length && elapsed >= pace.ttft + next * pace.delay) due += deltas[next++];
    if (next === deltas.length) response.end(due);
    else {
      if (due !== "") response.write(due);
      setTimeout(send, Math.max(0, pace.ttft + next * pace.delay - (performance.now() - startedAt)));
    }
  };
  response.flushHeaders();
  send();
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  const pieces: Buffer[] = [];
  request.on("data", (piece: Buffer) => pieces.push(piece));
  request.on("end", () => {
    const body = JSON.parse(Buffer.concat(pieces).toString("utf8")) as Body;
    const text = textOf(body.messages.findLast((message) => message.role === "user"));
    const { deltas, finish } = deltasFor(body, text);
    const base = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1_700_000_000, model: body.model };
    const event = (delta: unknown, reason: string | null = null): string =>
      `data: ${JSON.stringify({ ...base, choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
    const events = deltas.map((delta) => event(delta));
    events[0] = `${event({ role: "assistant", content: "" })}${events[0] ?? ""}`;
    const end = `${event({}, finish)}data: ${JSON.stringify({ ...base, choices: [], usage })}\n\ndata: [DONE]\n\n`;
    events[events.length - 1] += end;
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    play(response, events, { ttft: wish(text, "ttft", 0), delay: wish(text, "delay", 0) });
  });
}

const server = createServer((request, response) => {
  if (request.method === "POST") return answer(request, response);
  response.writeHead(404).end();
});
server.keepAliveTimeout = 75_000;
server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
// The parent is gone: nobody will ask any more.
process.on("disconnect", () => process.exit(0));
