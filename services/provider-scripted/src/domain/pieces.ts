// A text in the pieces in which it is streamed: words with the white space that follows them. Pure.

const longTextLength = 8_192;
const longPieceLength = 256;

/** A long text goes out in larger pieces: a frame per word would be tens of thousands of messages. */
export function piecesOf(text: string): string[] {
  const words = text.match(/\s*\S+\s*/g) ?? (text === "" ? [] : [text]);
  if (text.length <= longTextLength) return words;
  const pieces: string[] = [];
  for (const word of words) {
    const last = pieces.at(-1);
    if (last !== undefined && last.length < longPieceLength) pieces[pieces.length - 1] = last + word;
    else pieces.push(word);
  }
  return pieces;
}

export function countWords(text: string): number {
  return text.match(/\S+/g)?.length ?? 0;
}
