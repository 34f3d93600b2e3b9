// Draws a session. Everything that comes from a model, a tool or a person is set as text, never as markup.
export function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function pretty(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

function textOf(content) {
  return content.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("\n");
}

/** One tool call with its state: running, awaiting (with the two buttons), done, failed. */
function callCard(call, decide) {
  const card = element("div", `call ${call.state}`);
  const names = { running: "running…", awaiting: "needs approval", done: "done", failed: "failed", asked: "asked" };
  card.append(element("span", `state ${call.state}`, names[call.state] ?? call.state));
  card.append(element("strong", "", call.function_id));
  card.append(element("pre", "", pretty(call.args) ?? ""));
  if (call.result !== undefined) card.append(element("pre", call.state === "failed" ? "failure" : "", call.result));
  if (call.state !== "awaiting") return card;
  const row = element("div", "decision");
  if (call.reason) row.append(element("span", "note", call.reason));
  for (const [decision, label] of [
    ["allow", "Approve"],
    ["deny", "Deny"],
  ]) {
    const button = element("button", "", label);
    button.type = "button";
    button.addEventListener("click", () => decide(call, decision, row));
    row.append(button);
  }
  row.append(element("code", "", call.args_digest));
  card.append(row);
  return card;
}

function assistant(message, calls, decide, isLive) {
  const box = element("div", `message assistant${isLive ? " live" : ""}`);
  for (const block of message.content) {
    if (!block) continue;
    if (block.type === "text") box.append(element("div", "", block.text));
    if (block.type === "thinking" && block.text) {
      const details = element("details", "thinking");
      details.append(element("summary", "", "Thinking"), element("div", "", block.text));
      box.append(details);
    }
    if (block.type === "function_call" && block.id) {
      const known = calls.get(block.id) ?? { state: "asked" };
      box.append(callCard({ function_id: block.function_id, args: block.arguments, ...known }, decide));
    }
  }
  if (message.error_message) box.append(element("div", "failure", message.error_message));
  if (message.stop_reason === "aborted") box.append(element("div", "note", "stopped"));
  return box;
}

/** What a drawn message depends on: while it stays the same, its element (and the reader's selection) is kept. */
function signatureOf(key, content, calls) {
  const states = content.flatMap((block) => {
    const call = block?.type === "function_call" ? calls.get(block.id) : undefined;
    return call === undefined ? [] : [`${call.state}/${call.result?.length}`];
  });
  return `${key} ${states.join(" ")}`;
}

let kept = new Map();
let keptOf = null;

/** The whole transcript: stored entries, then what streams. */
export function drawTranscript(host, model, decide) {
  const isAtEnd = host.scrollHeight - host.scrollTop - host.clientHeight < 80;
  // Ids of entries are only unique within a session.
  if (keptOf !== model) kept = new Map();
  keptOf = model;
  const drawn = new Map();
  const add = (signature, make) => drawn.set(signature, kept.get(signature) ?? make());
  for (const [id, { message }] of model.entries) {
    const signature = signatureOf(id, message.content, model.calls);
    if (message.role === "user") add(signature, () => element("div", "message user", textOf(message.content)));
    if (message.role === "custom") {
      add(signature, () => element("div", "message note", message.display ?? textOf(message.content)));
    }
    if (message.role === "assistant") add(signature, () => assistant(message, model.calls, decide, false));
  }
  for (const [id, content] of model.live) {
    drawn.set(`live ${id}`, assistant({ content }, model.calls, decide, true));
  }
  kept = drawn;
  const elements = [...drawn.values()];
  for (const [index, item] of elements.entries()) {
    if (host.children[index] !== item) host.insertBefore(item, host.children[index] ?? null);
  }
  while (host.children.length > elements.length) host.lastChild.remove();
  if (isAtEnd) host.scrollTop = host.scrollHeight;
}

export function drawSessions(host, sessions, current, choose) {
  host.replaceChildren(
    ...sessions.map((session) => {
      const button = element("button");
      button.type = "button";
      button.setAttribute("aria-current", String(session.session_id === current));
      button.append(element("strong", "", session.last_message_summary ?? session.session_id));
      button.append(element("span", "", `${session.state.replaceAll("_", " ")} · ${session.session_id}`));
      button.addEventListener("click", () => choose(session.session_id));
      return button;
    }),
  );
}
