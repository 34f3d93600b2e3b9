export { createBlobs } from "./blobs.ts";
export { type ClaimCheck, createClaimCheck } from "./claim-check.ts";
export { connectBus } from "./connect.ts";
export { parseNatsUrl } from "./connect-nats.ts";
export { createDeltas } from "./deltas.ts";
export { readBatch } from "./direct-read.ts";
export { chooseModel, type ModelDefaults } from "./door-model.ts";
export {
  type AbortResult,
  acceptAbort,
  acceptAppend,
  acceptInbox,
  acceptStart,
  type DoorOptions,
  type InboxRequest,
  normaliseMessage,
} from "./doors.ts";
export { createEventLog, type EventLog, type LoggedRecord } from "./event-log.ts";
export { createJournal } from "./journal.ts";
export { isBlobRef } from "./journal-body.ts";
export { isPermission, isWrongSequence } from "./journal-errors.ts";
export { type Migrated, type MigrateOptions, migrateShards } from "./migrate/migrate-shards.ts";
export {
  type Credentials,
  generateCredentials,
  type Login,
  type NatsConfigOptions,
  operatorUser,
  renderNatsConfig,
} from "./nats-config.ts";
export { createOutcomes } from "./outcomes.ts";
export { type Permissions, permissionsOf } from "./permissions.ts";
export { type Grants, isGranted, RegistryTable } from "./registry-table.ts";
export { declaredStreams, type StreamsOptions } from "./stream-declarations.ts";
export { ensureStreams, readShards, verifyShards, verifyStreams } from "./streams.ts";
export type * from "./types.ts";
