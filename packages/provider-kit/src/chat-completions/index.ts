// Second door of the package: the wire that several providers share.
export { type ChatMessage, chatRequest } from "./chat-request.ts";
export type { ChatDialect } from "./dialect.ts";
export { streamChat } from "./stream-chat.ts";
