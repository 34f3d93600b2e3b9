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

/** The whole transcript: stored entries, then what streams. */
export function drawTranscript(host, model, decide) {
  const isAtEnd = host.scrollHeight - host.scrollTop - host.clientHeight < 80;
  const drawn = [];
  for (const { message } of model.entries.values()) {
    if (message.role === "user") drawn.push(element("div", "message user", textOf(message.content)));
    if (message.role === "custom")
      drawn.push(element("div", "message note", message.display ?? textOf(message.content)));
    if (message.role === "assistant") drawn.push(assistant(message, model.calls, decide, false));
  }
  for (const content of model.live.values()) drawn.push(assistant({ content }, model.calls, decide, true));
  host.replaceChildren(...drawn);
  if (isAtEnd) host.scrollTop = host.scrollHeight;
}

export function drawSessions(host, sessions, current, choose) {
  host.replaceChildren(
    ...sessions.map((session) => {
      const button = element("button");
      button.type = "button";
      button.setAttribute("aria-current", String(session.session_id === current));
      button.append(element("strong", "", session.last_message_summary ?? session.session_id));
      button.append(element("span", "", `${session.state} · ${session.session_id}`));
      button.addEventListener("click", () => choose(session.session_id));
      return button;
    }),
  );
}
