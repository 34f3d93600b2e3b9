// The hint in "no worker offers this function": the known id that was probably meant.

/** The most similar known id, when it is similar enough to be a slip. */
export function nearest(id: string, known: readonly string[]): string | null {
  const limit = Math.max(2, Math.floor(id.length / 4));
  let best: { id: string; distance: number } | null = null;
  for (const candidate of known) {
    if (Math.abs(candidate.length - id.length) > limit) continue;
    const distance = editDistance(id, candidate);
    if (distance <= limit && (best === null || distance < best.distance)) best = { id: candidate, distance };
  }
  return best?.id ?? null;
}

/** Levenshtein. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substituted = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((next[j - 1] ?? 0) + 1, (row[j] ?? 0) + 1, substituted));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
