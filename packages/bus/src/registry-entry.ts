// Reads registry entries, also those that a worker in another language wrote with a plain key-value client.
import { FunctionManifest, InstanceRecord, WorkerManifest } from "@flotilla/contracts";

const prefix = "$KV.REGISTRY.";
const decoder = new TextDecoder();

export type RegistryKey =
  | { readonly kind: "worker"; readonly worker: string }
  | { readonly kind: "instance"; readonly worker: string; readonly instance: string };

/** Null for a key that is not of the registry's grammar. */
export function parseRegistryKey(subject: string): RegistryKey | null {
  if (!subject.startsWith(prefix)) return null;
  const [kind, worker, instance, ...rest] = subject.slice(prefix.length).split(".");
  if (worker === undefined || rest.length > 0) return null;
  if (kind === "worker" && instance === undefined) return { kind: "worker", worker };
  if (kind === "inst" && instance !== undefined) return { kind: "instance", worker, instance };
  return null;
}

export function isGoodbye(operation: string, data: Uint8Array): boolean {
  return operation === "DEL" || operation === "PURGE" || data.length === 0;
}

/**
 * Optional fields may be missing: `first_registered_at` then is the time of storing. A function that cannot be read is
 * left out and named in `skipped`; null when the manifest itself is not one of `worker`.
 */
export function readManifest(
  data: Uint8Array,
  worker: string,
  storedAt: number,
): { manifest: WorkerManifest; skipped: string[] } | null {
  const raw = parseObject(data);
  if (raw === null) return null;
  const offered = Array.isArray(raw.functions) ? (raw.functions as unknown[]) : [];
  const functions = offered.map((value) => ({ value, parsed: FunctionManifest.safeParse(value) }));
  const result = WorkerManifest.safeParse({ worker, ...raw, functions: [] });
  if (!result.success || result.data.worker !== worker) return null;
  return {
    manifest: {
      ...result.data,
      first_registered_at: result.data.first_registered_at || storedAt,
      functions: functions.flatMap(({ parsed }) => (parsed.success ? [parsed.data] : [])),
    },
    skipped: functions.filter(({ parsed }) => !parsed.success).map(({ value }) => nameOf(value)),
  };
}

export function readInstance(data: Uint8Array, worker: string, instance: string): InstanceRecord | null {
  const raw = parseObject(data);
  if (raw === null) return null;
  const result = InstanceRecord.safeParse({ worker, instance, ...raw });
  return result.success && result.data.worker === worker && result.data.instance === instance ? result.data : null;
}

function parseObject(data: Uint8Array): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(decoder.decode(data));
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

function nameOf(value: unknown): string {
  const id = typeof value === "object" && value !== null ? (value as { id?: unknown }).id : undefined;
  return typeof id === "string" ? id.slice(0, 128) : "(no id)";
}
