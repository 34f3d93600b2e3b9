// An OTLP collector over gRPC that keeps what it was sent.
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { type OtlpSpan, readSpans } from "./otlp-spans.ts";

export interface StartedCollector extends AsyncDisposable {
  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly url: string;
  /** Every request as it came, to search for what must not be in one. */
  readonly requests: readonly Buffer[];
  readonly spans: readonly OtlpSpan[];
  stop(): Promise<void>;
}

const asIs = (value: Buffer): Buffer => value;
const service = {
  export: {
    path: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    requestStream: false,
    responseStream: false,
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  },
} as const;

export async function startCollector(): Promise<StartedCollector> {
  const requests: Buffer[] = [];
  const spans: OtlpSpan[] = [];
  const server = new Server();
  server.addService(service, {
    export: (call: { request: Buffer }, reply: (error: null, value: Buffer) => void) => {
      requests.push(call.request);
      spans.push(...readSpans(call.request));
      reply(null, Buffer.alloc(0));
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const stop = async (): Promise<void> => server.forceShutdown();
  return { url: `http://127.0.0.1:${port}`, requests, spans, stop, [Symbol.asyncDispose]: stop };
}
