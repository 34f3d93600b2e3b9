// Images as vendors take them: four types, plain base64. Anything else is replaced by a sentence.
import type { ContentBlock } from "@flotilla/contracts";

export interface WireImage {
  readonly type: "image";
  readonly mime: "image/png" | "image/jpeg" | "image/gif" | "image/webp";
  /** Base64 without line breaks. */
  readonly data: string;
}

const mimes: Readonly<Record<string, WireImage["mime"]>> = {
  "image/png": "image/png",
  "image/jpeg": "image/jpeg",
  "image/jpg": "image/jpeg",
  "image/gif": "image/gif",
  "image/webp": "image/webp",
};
const base64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** The image, or the sentence that stands for one no vendor takes. */
export function wireImage(
  block: Extract<ContentBlock, { type: "image" }>,
  options: { readonly isSupported: boolean },
): WireImage | { readonly type: "text"; readonly text: string } {
  const mime = mimes[block.mime.trim().toLowerCase()];
  const data = block.data
    .replace(/^data:[^,]*,/, "")
    .replaceAll(/\s/g, "")
    .replaceAll("-", "+")
    .replaceAll("_", "/");
  if (!options.isSupported) return { type: "text", text: "[An image was left out: this model takes no images.]" };
  if (mime === undefined) return { type: "text", text: `[An image was left out: ${block.mime} is not supported.]` };
  if (!base64.test(data)) return { type: "text", text: "[An image was left out: its data is not valid base64.]" };
  return { type: "image", mime, data };
}
