// Function ids to the names a model sees and back, for one request.
import { sha256Hex, toolNameOf } from "@flotilla/contracts";

const legalName = /^[a-zA-Z0-9_-]{1,64}$/;

export interface ToolNames {
  /** The name on the wire; an id that was not seen before (a call of an earlier turn) gets one too. */
  wireName(functionId: string): string;
  /** The id behind a name. A name that the model invented is passed on as it is. */
  functionId(wireName: string): string;
}

export function createToolNames(functionIds: Iterable<string>): ToolNames {
  const wireNames = new Map<string, string>();
  const ids = new Map<string, string>();
  const add = (id: string): string => {
    const name = freeName(id, ids);
    wireNames.set(id, name);
    ids.set(name, id);
    return name;
  };
  for (const id of functionIds) if (!wireNames.has(id)) add(id);
  return {
    wireName: (id) => wireNames.get(id) ?? add(id),
    functionId: (name) => ids.get(name) ?? name,
  };
}

function freeName(id: string, taken: ReadonlyMap<string, string>): string {
  const name = toolNameOf(id, new Set(taken.keys()));
  if (legalName.test(name) && !taken.has(name)) return name;
  // A name that no vendor takes (a foreign tool, one that is not an id of ours), or a second clash.
  const slug = id.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, 55);
  const plain = slug === "" ? "tool" : slug;
  return taken.has(plain) || legalName.test(name) ? `${plain}_${sha256Hex(id).slice(0, 8)}` : plain;
}
