export {
  createLogger,
  isLogLevel,
  type LogDestination,
  type LoggerOptions,
  type LogLevel,
  logLevels,
} from "./logger.ts";
export type { Logger, LogMeta } from "./logger-types.ts";
export { attributeNames, type MetricName, type MetricRow, metricNames, spanNames } from "./names.ts";
export {
  type CallIds,
  extractContext,
  type HeadersLike,
  idsOf,
  injectContext,
  isTracing,
  registerPropagation,
  withIds,
} from "./propagation.ts";
export { isSecretKey, redact } from "./redact.ts";
export {
  derivedTraceparent,
  idAttributesOf,
  noteIds,
  noteModelCall,
  traceparentOf,
} from "./spans.ts";
export { startTelemetry, type Telemetry, type TelemetryOptions } from "./start-telemetry.ts";
