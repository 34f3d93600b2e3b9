// Prometheus series of calls; created once per process, shared by its workers.
import { isErrorCode } from "@flotilla/errors";
import { type MetricName, metricNames } from "@flotilla/telemetry";
import { Counter, Gauge, Histogram, type Metric, type Registry } from "prom-client";

const bucketsMs = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000];

export interface FunctionMetrics {
  begin(): void;
  /** `code` is OK or an error code; codes of foreign workers count as FOREIGN, so that the label stays bounded. */
  end(code: string, durationMs: number): void;
}

export interface CallMetrics {
  of(functionId: string): FunctionMetrics;
}

export function createCallMetrics(registry: Registry, worker: string): CallMetrics {
  const calls = once(registry, "flotilla_calls_total", (options) => new Counter(options));
  const durations = once(
    registry,
    "flotilla_call_duration_ms",
    (options) => new Histogram({ ...options, buckets: bucketsMs }),
  );
  const running = once(registry, "flotilla_calls_in_flight", (options) => new Gauge(options));
  return {
    of(functionId) {
      const byCode = new Map<string, { inc(): void }>();
      const duration = durations.labels(worker, functionId);
      const inFlight = running.labels(worker);
      const counterOf = (code: string): { inc(): void } => {
        const label = code === "OK" || isErrorCode(code) ? code : "FOREIGN";
        const counter = byCode.get(label) ?? calls.labels(worker, functionId, label);
        byCode.set(label, counter);
        return counter;
      };
      return {
        begin: () => inFlight.inc(),
        end(code, durationMs) {
          inFlight.dec();
          counterOf(code).inc();
          duration.observe(durationMs);
        },
      };
    },
  };
}

function once<M extends Metric>(
  registry: Registry,
  name: MetricName,
  create: (options: { name: string; help: string; labelNames: string[]; registers: Registry[] }) => M,
): M {
  const existing = registry.getSingleMetric(name);
  if (existing !== undefined) return existing as M;
  const { description, labels } = metricNames[name];
  return create({ name, help: description, labelNames: [...labels], registers: [registry] });
}
