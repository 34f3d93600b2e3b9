// The same reply on the wire in other ways: cut into random pieces, other line ends, other spelling of the same JSON.
import type { Scenario } from "./upstream.mjs";

/** `count` variants, the first cut into single bytes; the seed of each is its number, so a failure can be repeated. */
export function cutAtRandom(scenario: Scenario, count: number): Scenario[] {
  return Array.from({ length: count }, (_, seed) => {
    const random = randomOf(seed + 1);
    const sizes = seed === 0 ? [1] : Array.from({ length: 17 }, () => 1 + Math.floor(random() * 40));
    const reply = {
      ...scenario.reply,
      chunk: { mode: "bytes", sizes },
      eol: random() < 0.4 ? "\r\n" : random() < 0.2 ? "\r" : "\n",
      space: random() < 0.7,
      bom: random() < 0.2,
      gzip: random() < 0.2,
      multiline: random() < 0.3,
      escapeNonAscii: random() < 0.5,
    };
    return { ...scenario, reply };
  });
}

/** mulberry32 */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
