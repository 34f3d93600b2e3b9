// Tracing for one process: on only when an OTLP endpoint is configured, and never a reason to fail (I15).
import type { Logger } from "./logger-types.ts";
import { registerPropagation } from "./propagation.ts";

export interface TelemetryOptions {
  readonly serviceName: string;
  readonly version: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Told when telemetry could not start or flush. */
  readonly logger?: Logger | undefined;
}

export interface Telemetry {
  readonly isExporting: boolean;
  /** Flushes what is buffered, for at most `timeoutMs`. Never throws. */
  shutdown(timeoutMs?: number): Promise<void>;
}

const off: Telemetry = { isExporting: false, shutdown: async () => {} };

/** Spans to OTLP over gRPC when OTEL_EXPORTER_OTLP_ENDPOINT (or its traces variant) is set; the SDK is only loaded then. */
export async function startTelemetry(options: TelemetryOptions): Promise<Telemetry> {
  registerPropagation();
  const { env, logger } = options;
  const endpoint = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (!endpoint || env.OTEL_SDK_DISABLED === "true" || env.OTEL_ENABLED === "false") return off;
  try {
    return await startSdk(options, endpoint);
  } catch (error) {
    logger?.warn("telemetry could not start; going on without it", { error });
    return off;
  }
}

async function startSdk(options: TelemetryOptions, endpoint: string): Promise<Telemetry> {
  const [{ NodeSDK, resources }, { OTLPTraceExporter }] = await Promise.all([
    import("@opentelemetry/sdk-node"),
    import("@opentelemetry/exporter-trace-otlp-grpc"),
  ]);
  const sdk = new NodeSDK({
    serviceName: options.serviceName,
    // Not the process detector: command lines may hold a token (I13).
    resourceDetectors: [resources.envDetector, resources.hostDetector],
    resource: resources
      .defaultResource()
      .merge(resources.resourceFromAttributes({ "service.version": options.version })),
    traceExporter: new OTLPTraceExporter({ url: endpoint }),
    textMapPropagator: null,
    metricReaders: [],
    logRecordProcessors: [],
    instrumentations: [],
  });
  sdk.start();
  return {
    isExporting: true,
    async shutdown(timeoutMs = 3_000) {
      let timer: NodeJS.Timeout | undefined;
      const limit = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error(`no flush within ${timeoutMs} ms`)), timeoutMs);
      });
      try {
        await Promise.race([sdk.shutdown(), limit]);
      } catch (error) {
        options.logger?.warn("the last spans could not be flushed", { error });
      } finally {
        clearTimeout(timer);
      }
    },
  };
}
