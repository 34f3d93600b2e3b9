// The console page: which session is shown, what its events mean, and what the person does.
import { call, follow, Problem, setToken } from "./api.js";
import { drawSessions, drawTranscript } from "./view.js";

const byId = (id) => document.getElementById(id);
const listEveryMs = 3_000;

let current = null;
let following = null;
let model = emptyModel();
let isDrawQueued = false;

function emptyModel() {
  return { entries: new Map(), live: new Map(), calls: new Map(), state: "" };
}

/** randomUUID needs a secure context; a page served over plain HTTP has none. */
function freshId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const path = (rest = "") => `/v1/sessions/${encodeURIComponent(current)}${rest}`;

function draw() {
  if (isDrawQueued) return;
  isDrawQueued = true;
  requestAnimationFrame(() => {
    isDrawQueued = false;
    drawTranscript(byId("transcript"), model, decide);
  });
}

function showProblem(error) {
  byId("problem").hidden = error === null;
  byId("problem").textContent = error === null ? "" : error.message;
  if (error instanceof Problem && error.status === 401) byId("token-form").hidden = false;
}

function showState(state) {
  model.state = state;
  byId("status").textContent = state.replaceAll("_", " ");
  byId("abort").disabled = current === null || state === "stopped" || state === "failed" || state === "";
}

function setCall(id, change) {
  model.calls.set(id, { ...model.calls.get(id), function_call_id: id, ...change });
}

/** Results of stored entries, so that a call of an earlier turn shows what came of it. */
function addEntries(entries) {
  for (const entry of entries) {
    model.entries.set(entry.entry_id, entry);
    const { message } = entry;
    if (message.role !== "function_result") continue;
    setCall(message.function_call_id, { state: message.is_error ? "failed" : "done", result: textOf(message) });
  }
}

function textOf({ content, details }) {
  const text = content.map((block) => block.text ?? "").join("\n");
  return text || (details == null ? undefined : JSON.stringify(details));
}

/** User messages come with no event of their own: the transcript is read again when a turn begins and ends. */
async function readTranscript() {
  const session = current;
  const { messages } = await call(path("/messages"));
  if (session !== current) return;
  model.entries = new Map();
  addEntries(messages);
  draw();
}

const handlers = {
  snapshot(event) {
    model = emptyModel();
    addEntries(event.messages);
    showState(event.state?.state ?? "provisioning");
    readTranscript().catch(showProblem);
  },
  turn_state_changed(event) {
    showState(event.new_value.state);
    if (event.new_value.state === "provisioning") readTranscript().catch(showProblem);
  },
  message_update(event) {
    const content = model.live.get(event.message_id) ?? [];
    const block = content[event.index] ?? { type: event.kind, text: "" };
    block.text = block.text.slice(0, event.offset) + event.delta;
    content[event.index] = block;
    model.live.set(event.message_id, content);
  },
  message_complete(event) {
    model.live.delete(event.message_id);
    addEntries([{ entry_id: event.entry_id, message: event.message }]);
  },
  message_aborted(event) {
    model.live.delete(event.message_id);
  },
  function_execution_start(event) {
    setCall(event.function_call_id, { state: "running", function_id: event.function_id, args: event.args });
  },
  function_execution_end(event) {
    setCall(event.function_call_id, { state: event.is_error ? "failed" : "done", result: textOf(event.result) });
  },
  approval_requested(event) {
    const { function_call_id: id, function_id, args, args_digest, reason } = event;
    setCall(id, { state: "awaiting", function_id, args, args_digest, reason });
  },
  approval_decided(event) {
    setCall(event.function_call_id, { state: event.decision === "allow" ? "running" : "failed" });
  },
  agent_end() {
    readTranscript().catch(showProblem);
    void readSessions();
  },
};

function choose(sessionId) {
  following?.abort();
  current = sessionId;
  model = emptyModel();
  location.hash = sessionId === null ? "" : sessionId;
  byId("title").textContent = sessionId ?? "New session";
  showState("");
  showProblem(null);
  draw();
  if (sessionId === null) return;
  following = new AbortController();
  void follow(sessionId, {
    signal: following.signal,
    onEvent(event) {
      handlers[event.type]?.(event);
      draw();
    },
    onState(state, error = null) {
      if (state === "live") showState(model.state);
      else byId("status").textContent = state;
      showProblem(error);
    },
  });
  void readSessions();
}

async function decide(approval, decision, row) {
  for (const button of row.querySelectorAll("button")) button.disabled = true;
  try {
    const body = { decision, args_digest: approval.args_digest };
    await call(path(`/approvals/${encodeURIComponent(approval.function_call_id)}`), body);
    showProblem(null);
  } catch (error) {
    showProblem(error);
    draw();
  }
}

async function readSessions() {
  try {
    const { sessions } = await call("/v1/sessions?limit=100");
    drawSessions(byId("sessions"), sessions, current, choose);
    byId("list-note").hidden = true;
  } catch (error) {
    byId("list-note").hidden = false;
    byId("list-note").textContent = `The list is not available: ${error.message}`;
    if (error instanceof Problem && error.status === 401) showProblem(error);
  }
}

async function send(event) {
  event.preventDefault();
  const text = byId("text").value.trim();
  if (text === "") return;
  const isNew = current === null;
  if (isNew) current = `web-${freshId()}`;
  try {
    await call(path("/turns"), { message_id: freshId(), text, on_busy: byId("busy").value });
    byId("text").value = "";
    showProblem(null);
    if (isNew) choose(current);
  } catch (error) {
    if (isNew) current = null;
    showProblem(error);
  }
}

byId("composer").addEventListener("submit", send);
byId("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) void send(event);
});
byId("new").addEventListener("click", () => choose(null));
byId("abort").addEventListener("click", () => call(path("/abort"), {}).catch(showProblem));
byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(byId("token").value);
  byId("token-form").hidden = true;
  choose(current);
});
setInterval(() => void readSessions(), listEveryMs);
void readSessions();
if (location.hash.length > 1) choose(decodeURIComponent(location.hash.slice(1)));
