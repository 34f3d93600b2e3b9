// docs/configuration.md and the schemas of the workers name the same variables.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (...path: string[]): string => readFileSync(join(root, ...path), "utf8");

const schemaFiles = [
  join("packages", "worker", "src", "worker-env.ts"),
  ...readdirSync(join(root, "services"))
    .map((service) => join("services", service, "src", "config.ts"))
    .filter((file) => existsSync(join(root, file))),
];
const inSchemas = new Set(
  schemaFiles.flatMap((file) =>
    [...read(file).matchAll(/^\s+([A-Z][A-Z0-9_]*_[A-Z0-9_]+):/gm)].map((match) => match[1]),
  ),
);
/** Read elsewhere: by the CLI, the composite, telemetry. Keys of providers are documented with their worker. */
const elsewhere = ["WORKERS", "FLOTILLA_URL", "FLOTILLA_TOKEN", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"];

const documented = new Set(
  read("docs", "configuration.md")
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .flatMap((line) => [...(line.split("|")[1] ?? "").matchAll(/`([A-Z][A-Z0-9_]+)`/g)].map((match) => match[1])),
);

describe("docs/configuration.md", () => {
  it("names every variable that a worker reads", () => {
    expect([...inSchemas].filter((name) => !documented.has(name))).toEqual([]);
  });

  it("names no variable that nobody reads", () => {
    const known = new Set([...inSchemas, ...elsewhere]);
    const unknown = [...documented].filter((name) => !known.has(name) && !name?.startsWith("OTEL_"));
    expect(unknown).toEqual([]);
  });
});
