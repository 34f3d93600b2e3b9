// The HTTP API for the page: JSON calls and an event stream that resumes. A stream by fetch, because EventSource cannot
// send a token.
const tokenKey = "flotilla-token";
const longestPauseMs = 8_000;

export class Problem extends Error {
  constructor(status, body) {
    super(body?.detail ?? `The server answered ${status}`);
    this.status = status;
    this.code = body?.code ?? "";
  }
}

export function setToken(token) {
  sessionStorage.setItem(tokenKey, token);
}

function authorization() {
  const token = sessionStorage.getItem(tokenKey);
  return token ? { authorization: `Bearer ${token}` } : {};
}

export async function call(path, body) {
  const init =
    body === undefined
      ? { headers: authorization() }
      : {
          method: "POST",
          headers: { "content-type": "application/json", ...authorization() },
          body: JSON.stringify(body),
        };
  const response = await fetch(path, init);
  const answer = await response.json().catch(() => null);
  if (!response.ok) throw new Problem(response.status, answer);
  return answer;
}

/** Calls `onEvent` for every event of a session until the signal aborts; comes back with the last id after a cut. */
export async function follow(sessionId, { signal, onEvent, onState }) {
  let lastId = null;
  let pauseMs = 250;
  while (!signal.aborted) {
    try {
      const headers = { ...authorization(), ...(lastId === null ? {} : { "last-event-id": lastId }) };
      const response = await fetch(`/v1/sessions/${encodeURIComponent(sessionId)}/events`, { headers, signal });
      if (!response.ok) throw new Problem(response.status, await response.json().catch(() => null));
      onState("live");
      pauseMs = 250;
      for await (const { id, data } of eventsOf(response.body)) {
        onEvent(JSON.parse(data));
        lastId = id;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.status < 500) {
        onState(error.message, error);
        return;
      }
    }
    onState("reconnecting");
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    pauseMs = Math.min(pauseMs * 2, longestPauseMs);
  }
}

async function* eventsOf(body) {
  let rest = "";
  for await (const piece of chunksOf(body.pipeThrough(new TextDecoderStream()))) {
    rest += piece;
    const parts = rest.split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const event = { id: null, data: null };
      for (const line of part.split("\n")) {
        if (line.startsWith("id: ")) event.id = line.slice(4);
        if (line.startsWith("data: ")) event.data = line.slice(6);
      }
      if (event.id !== null && event.data !== null) yield event;
    }
  }
}

async function* chunksOf(stream) {
  const reader = stream.getReader();
  try {
    for (let step = await reader.read(); !step.done; step = await reader.read()) yield step.value;
  } finally {
    reader.releaseLock();
  }
}
