export { type ApiClient, type ApiClientOptions, apiClient, type RequestOptions } from "./api-client.ts";
export { ApiError, UnreachableError } from "./errors.ts";
export { parseEventStream } from "./event-stream.ts";
export { type EventsOptions, type SentEvent, sessionEvents } from "./session-events.ts";
