// Texts of others that go into state and events, which every commit carries: cut to a length. Pure.

const limit = 2_000;

export function clip(text: string): string {
  return text.length <= limit ? text : `${text.slice(0, limit)} … (${text.length} characters)`;
}
