// Reading a permissions file; that it is absent or unreadable is an answer, not an error.
import { readFile } from "node:fs/promises";
import type { FileRead } from "./rules-source.ts";

const maxBytes = 1024 * 1024;

export async function readPermissionsFile(path: string): Promise<FileRead> {
  try {
    const text = await readFile(path, "utf8");
    if (text.length > maxBytes) return { kind: "unreadable", message: `the file is larger than ${maxBytes} bytes` };
    return { kind: "text", text };
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR") return { kind: "missing" };
    return { kind: "unreadable", message: `the file cannot be read (${code ?? (error as Error).message})` };
  }
}
