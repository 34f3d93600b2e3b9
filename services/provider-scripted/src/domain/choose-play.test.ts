import { describe, expect, it } from "vitest";
import { choosePlay, type PlayMessage } from "./choose-play.ts";

const user = (text: string, timestamp = 1): PlayMessage => ({
  role: "user",
  content: [{ type: "text", text }],
  timestamp,
});
const assistant = (stop_reason: "end" | "error" | "aborted" | "function_call" = "end"): PlayMessage => ({
  role: "assistant",
  content: [],
  stop_reason,
  model: "play",
  provider: "scripted",
  timestamp: 2,
});
const result = (
  function_id: string,
  details: unknown,
  is_error = false,
  text = JSON.stringify(details),
): PlayMessage => ({
  role: "function_result",
  function_call_id: "c1",
  function_id,
  content: [{ type: "text", text }],
  details,
  is_error,
  timestamp: 3,
});
const said = (model: string, messages: PlayMessage[]): string =>
  choosePlay(model, messages)
    .steps.map((step) =>
      step.kind === "say"
        ? step.text
        : step.kind === "call"
          ? `call ${step.functionId} ${JSON.stringify(step.args)}`
          : step.kind,
    )
    .join(" | ");

describe("the model play", () => {
  const script = "say one\n---\nsay two\n---\nsay three";

  it("plays the block whose number is that of the answers since the script", () => {
    expect(said("play", [user(script)])).toBe("one");
    expect(said("play", [user(script), assistant("function_call"), result("demo::echo", "x")])).toBe("two");
    expect(said("play", [assistant(), user(script), assistant(), assistant()])).toBe("three");
  });

  it("does not count failed answers, and counts aborted ones", () => {
    expect(said("play", [user(script), assistant("error")])).toBe("one");
    expect(said("play", [user(script), assistant("aborted")])).toBe("two");
  });

  it("says done past the last block", () => {
    expect(said("play", [user("say a"), assistant()])).toBe("done");
  });

  it("keeps to the script when later messages are plain, and changes to a later script", () => {
    expect(said("play", [user(script), assistant(), user("be quick, please")])).toBe("two");
    expect(said("play", [user(script), assistant(), user("say new")])).toBe("new");
  });

  it("plays nothing of a script with a fault, and says which", () => {
    const play = choosePlay("play", [user("say a\ndelay x")]);
    expect(play.steps).toEqual([]);
    expect(play.problem).toMatch(/^script line 2/);
  });

  it("names a script by its place, time and text, so that two equal ones in a session are apart", () => {
    const first = choosePlay("play", [user("say a", 5)]);
    const again = choosePlay("play", [user("say a", 5), assistant("error"), user("go on")]);
    const second = choosePlay("play", [user("say a", 5), assistant("error"), user("say a", 9)]);
    expect(again.script).toBe(first.script);
    expect(second.script).not.toBe(first.script);
    expect(second.block).toBe(0);
  });

  it("answers plain talk as the demo model does", () => {
    const play = choosePlay("play", [user("hello there")]);
    expect(play.isPaced).toBe(true);
    expect(said("play", [user("hello there")])).toMatch(/hello there/);
  });
});

describe("the model demo", () => {
  it("plays a script without its failures, so that it can stand behind play in a chain", () => {
    expect(said("demo", [user("fail-first 9 permanent\nsay rescued")])).toBe("rescued");
    expect(said("demo", [user("error permanent")])).toMatch(/Hello/);
  });

  it("takes talk that looks like a script for talk", () => {
    expect(said("demo", [user("call me Bob")])).toMatch(/call me Bob/);
    expect(said("demo", [user("think about it")])).toMatch(/think about it/);
  });

  it("tells the story of an order: look-up, refund, and an end that says what came of it", () => {
    const talk = [user("Please refund my order #A-77")];
    expect(said("demo", talk)).toBe('Let me look up order A-77 for you. | call demo::lookup {"order":"A-77"}');
    talk.push(
      assistant("function_call"),
      result("demo::lookup", { order: "A-77", status: "delivered", item: "a lamp", total: 12.5 }),
    );
    expect(said("demo", talk)).toMatch(/a lamp, delivered.*\| call demo::refund \{"order":"A-77","amount":12.5\}/);
    talk.push(assistant("function_call"));
    expect(said("demo", [...talk, result("demo::refund", { amount: 12.5 })])).toMatch(/refund of 12.5 for order A-77/);
    expect(said("demo", [...talk, result("demo::refund", { status: "denied" }, true, "too late")])).toMatch(
      /not approved.*too late/,
    );
    expect(said("demo", [...talk, result("demo::refund", { decision: "expired" }, true)])).toMatch(/in time/);
    expect(said("demo", [...talk, result("demo::refund", {}, true, "no worker")])).toMatch(
      /did not go through: no worker/,
    );
  });

  it("stops the story when the look-up fails", () => {
    expect(said("demo", [user("my order 5"), assistant(), result("demo::lookup", {}, true, "gone")])).toMatch(
      /could not look up order 5: gone/,
    );
  });
});

it("refuses another model by naming those that exist", () => {
  expect(choosePlay("gpt-9", [user("say a")]).problem).toBe(
    "the scripted provider has the models play and demo, not gpt-9",
  );
});
