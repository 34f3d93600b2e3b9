// JSON lines on stderr: one record per line, secret-like keys masked, the active trace's ids added.
import { trace } from "@opentelemetry/api";
import type { Logger, LogMeta } from "./logger-types.ts";
import { redact, redactText } from "./redact.ts";

export const logLevels = ["trace", "debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

export interface LogDestination {
  write(line: string): unknown;
}

export interface LoggerOptions {
  readonly level: LogLevel;
  /** The worker. */
  readonly name: string;
  /** @default process.stderr */
  readonly destination?: LogDestination | undefined;
  /** @default Date.now */
  readonly now?: (() => number) | undefined;
}

export function isLogLevel(value: unknown): value is LogLevel {
  return logLevels.some((level) => level === value);
}

export function createLogger(options: LoggerOptions): Logger {
  const sink: Sink = {
    threshold: logLevels.indexOf(options.level),
    name: options.name,
    destination: options.destination ?? process.stderr,
    now: options.now ?? Date.now,
  };
  return loggerWith(sink, {});
}

interface Sink {
  readonly threshold: number;
  readonly name: string;
  readonly destination: LogDestination;
  readonly now: () => number;
}

function loggerWith(sink: Sink, bound: LogMeta): Logger {
  const at = (level: LogLevel) => {
    if (logLevels.indexOf(level) < sink.threshold) return () => {};
    return (message: string, meta?: LogMeta) => {
      sink.destination.write(lineOf(sink, level, message, meta === undefined ? bound : { ...bound, ...meta }));
    };
  };
  return {
    trace: at("trace"),
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    with: (meta) => loggerWith(sink, { ...bound, ...meta }),
  };
}

/** The record's own keys come last, so that no meta key can replace them. */
function lineOf(sink: Sink, level: LogLevel, message: string, meta: LogMeta): string {
  const span = trace.getActiveSpan()?.spanContext();
  const record = {
    ...(redact(meta) as LogMeta),
    ...(span === undefined ? {} : { trace_id: span.traceId, span_id: span.spanId }),
    time: new Date(sink.now()).toISOString(),
    level,
    name: sink.name,
    message: redactText(message),
  };
  return `${JSON.stringify(record)}\n`;
}
