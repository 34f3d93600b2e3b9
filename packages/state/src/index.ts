export { connectState, type StateOptions } from "./connect-state.ts";
export { keys } from "./keys.ts";
export { projectionOf, summaryOf } from "./projection.ts";
export type {
  Applied,
  EntryRow,
  ListQuery,
  ProjectionStatus,
  ProjectionStore,
  ProjectionWrite,
  SessionPage,
  SessionRow,
  State,
} from "./types.ts";
