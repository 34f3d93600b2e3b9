// Matching function ids against patterns in which `*` stands for any run of characters, `::` included.

/** Linear in practice: no regular expression is built, so no pattern can make it backtrack without bound. */
export function matchesGlob(pattern: string, id: string): boolean {
  let at = 0;
  let from = 0;
  let star = -1;
  let resume = 0;
  while (at < id.length) {
    if (pattern[from] === "*") {
      star = from++;
      resume = at;
    } else if (from < pattern.length && pattern[from] === id[at]) {
      from++;
      at++;
    } else if (star !== -1) {
      // The newest star swallows one character more.
      from = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  while (pattern[from] === "*") from++;
  return from === pattern.length;
}
