export { type Answer, type AnswerBlock, createAnswer, parseArguments } from "./answer.ts";
export { endpointOf } from "./base-url.ts";
export { failureOf, kindOf } from "./classify.ts";
export { secretOf } from "./credential.ts";
export { type Failure, ProviderFailure, permanent, transient } from "./failure.ts";
export { createFrameEmitter, type FrameBus, type FrameEmitter, type FrameEmitterOptions } from "./frame-emitter.ts";
export { type EventStream, type StreamRequest, withEventStream } from "./http-stream.ts";
export type { WireImage } from "./images.ts";
export { implementProvider, type ProviderOptions } from "./implement-provider.ts";
export { asArray, asCount, asRecord, asText, type JsonRecord, parseRecord } from "./json.ts";
export { addCounts, type TokenCounts, usageOf } from "./pricing.ts";
export type { Ending, ModelMeta, ModelRequest, ProviderCall, StreamCall } from "./provider-call.ts";
export { resultText } from "./result-text.ts";
export { createSseParser, type SseEvent, type SseParser } from "./sse-parser.ts";
export { createToolNames, type ToolNames } from "./tool-names.ts";
export { toolSchema } from "./tool-schema.ts";
export {
  type PreparedAssistant,
  type PreparedBlock,
  type PreparedCall,
  type PreparedMessage,
  type PreparedPart,
  type PreparedResult,
  type PreparedUser,
  prepareTranscript,
  type TranscriptOptions,
} from "./transcript.ts";
export { readVendorError, type VendorError, vendorErrorOf } from "./vendor-error.ts";
