export type { Logger, LogMeta } from "./logger-types.ts";
