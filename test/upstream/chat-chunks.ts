// Builders of Chat Completions chunks.
type Chunk = Record<string, unknown>;

export const delta = (fields: Chunk, finish_reason: string | null = null): Chunk => ({
  choices: [{ index: 0, delta: fields, finish_reason }],
});
export const text = (...pieces: string[]): Chunk[] => pieces.map((content) => delta({ content }));
export const fragment = (fields: Chunk): Chunk => delta({ tool_calls: [fields] });
/** A call whose arguments come in pieces. */
export const call = (index: number, id: string, ...pieces: string[]): Chunk[] => [
  fragment({ index, id, type: "function", function: { name: "{{tool:0}}", arguments: "" } }),
  ...pieces.map((piece) => fragment({ index, function: { arguments: piece } })),
];
export const finish = (reason: string): Chunk => delta({}, reason);
export const usage = (prompt_tokens: number, completion_tokens: number, more: Chunk = {}): Chunk => ({
  choices: [],
  usage: { prompt_tokens, completion_tokens, ...more },
});
export const failure = (error: unknown): Chunk => ({ $bare: true, error });
