// What a model reads of a function's result (contracts.md 12.2).
import { type FunctionResultMessage, textOf } from "@flotilla/contracts";

/** Text blocks joined by newlines; a denial is marked and its envelope put in front. */
export function resultText(result: Pick<FunctionResultMessage, "content" | "details">): string {
  const text = textOf(result);
  if (!isDenied(result.details)) return text;
  return `[PERMISSION_DENIED]\n${JSON.stringify(result.details)}\n\n${text}`;
}

function isDenied(details: unknown): boolean {
  return typeof details === "object" && details !== null && "status" in details && details.status === "denied";
}
