// The call ids of one request: legal for the vendor, and unique within the request.
import { sha256Hex } from "@flotilla/contracts";

export interface WireIds {
  /** A free id on the wire, made from the first candidate that is not taken. */
  take(...candidates: (string | undefined)[]): string;
}

export function createWireIds(options: { readonly maxLength: number }): WireIds {
  const taken = new Set<string>();
  const claim = (id: string): string => {
    taken.add(id);
    return id;
  };
  return {
    take(...candidates) {
      const known = candidates.filter((id) => id !== undefined && id !== "") as string[];
      for (const id of known) {
        const legal = legalId(id, options.maxLength);
        if (!taken.has(legal)) return claim(legal);
      }
      const base = known[0] ?? "call";
      for (let n = 2; ; n++) {
        const id = legalId(`${base}_${n}`, options.maxLength);
        if (!taken.has(id)) return claim(id);
      }
    },
  };
}

function legalId(id: string, maxLength: number): string {
  const legal = id.replaceAll(/[^A-Za-z0-9_-]/g, "_");
  return legal.length <= maxLength ? legal : `${legal.slice(0, maxLength - 9)}_${sha256Hex(id).slice(0, 8)}`;
}
