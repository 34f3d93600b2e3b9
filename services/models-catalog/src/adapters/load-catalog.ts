// Reads the shipped data files and the operator's override file.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { configInvalid } from "@flotilla/config";
import { z } from "zod";
import { Catalog, CatalogFile, OverrideFile } from "../domain/catalog.ts";

const shipped = ["models.json", "fixtures.json"];

/** Throws CONFIG_INVALID, naming the variable and the faulty row, for an override file that cannot be used. */
export function loadCatalog(overridePath: string | undefined): Catalog {
  const rows = shipped.flatMap((name) => {
    const text = readFileSync(new URL(`../../data/${name}`, import.meta.url), "utf8");
    return CatalogFile.parse(JSON.parse(text)).models;
  });
  const catalog = new Catalog(rows);
  return overridePath === undefined ? catalog : withOverrides(catalog, resolve(overridePath));
}

function withOverrides(catalog: Catalog, path: string): Catalog {
  try {
    return catalog.overriddenBy(OverrideFile.parse(JSON.parse(readFileSync(path, "utf8"))).models);
  } catch (error) {
    throw configInvalid([{ variable: "FLOTILLA_MODELS_FILE", problem: problemOf(error) }]);
  }
}

function problemOf(error: unknown): string {
  if (error instanceof z.ZodError) return z.prettifyError(error).replaceAll("\n", " ");
  if (error instanceof SyntaxError) return `is no JSON (${error.message})`;
  const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
  return `the file cannot be read (${code})`;
}
