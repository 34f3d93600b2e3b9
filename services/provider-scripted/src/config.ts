// What the scripted provider reads from its environment.
import { milliseconds } from "@flotilla/config";
import { z } from "zod";

export const ScriptedConfig = z.object({
  /** Pause between two words of the demo's own answers. */
  FLOTILLA_SCRIPTED_WORD_MS: milliseconds(15, { max: 10_000 }),
});
export type ScriptedConfig = z.output<typeof ScriptedConfig>;
