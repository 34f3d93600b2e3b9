// docs/telemetry.md and the registry of telemetry names say the same; nobody makes up a name; off means not even loaded.
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { attributeNames, metricNames, spanNames } from "@flotilla/telemetry";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const page = readFileSync(join(root, "docs", "telemetry.md"), "utf8");
const rows = page.split("\n").flatMap((line) => /^\| `([^`]+)`/.exec(line)?.[1] ?? []);

describe("docs/telemetry.md", () => {
  it("has a row for every span, attribute and metric, and for nothing else", () => {
    const spans = [
      spanNames.serve("METHOD", "/route"),
      spanNames.call("<function>"),
      spanNames.execute("<function>"),
      spanNames.step("<state>"),
    ];
    const known = [...spans, ...Object.values(attributeNames), ...Object.keys(metricNames)];
    expect(rows.filter((row) => !row.startsWith("OTEL_")).sort()).toEqual(known.sort());
  });

  it("says of each metric its type, its labels and what it means", () => {
    for (const [name, { type, labels, description }] of Object.entries(metricNames)) {
      const row = page.split("\n").find((line) => line.startsWith(`| \`${name}\``)) ?? "";
      for (const said of [type, description, ...labels]) expect(row, name).toContain(said);
    }
  });
});

describe("names", () => {
  it("come from the registry: no source file spells an attribute or a metric itself", () => {
    const spelled = [...Object.values(attributeNames), ...Object.keys(metricNames)].filter((name) =>
      name.includes("."),
    );
    const found = sourceFiles().flatMap((file) => {
      const text = readFileSync(file, "utf8");
      return spelled.filter((name) => text.includes(`"${name}"`)).map((name) => `${file}: ${name}`);
    });
    expect(found).toEqual([]);
  });
});

describe("telemetry that is off", () => {
  it("loads neither the SDK nor gRPC in a process with every worker (I15)", async () => {
    const program = `
      import { registerHooks } from "node:module";
      const loaded = new Set();
      registerHooks({ resolve(specifier, context, next) {
        const found = next(specifier, context);
        const name = /node_modules\\/(@opentelemetry\\/[^/]+|@grpc\\/[^/]+)\\//.exec(found.url)?.[1];
        if (name !== undefined) loaded.add(name);
        return found;
      } });
      const { startTelemetry } = await import("@flotilla/telemetry");
      const { allWorkers, loadDefinitions } = await import("@flotilla/fleet");
      await loadDefinitions(allWorkers());
      await startTelemetry({ serviceName: "w", version: "1", env: {} });
      console.log(JSON.stringify([...loaded].sort()));
      process.exit(0);
    `;
    const run = promisify(execFile);
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", program], { cwd: root });
    const light = ["api", "context-async-hooks", "core", "semantic-conventions"];
    expect(JSON.parse(stdout)).toEqual(light.map((name) => `@opentelemetry/${name}`));
  });
});

function sourceFiles(): string[] {
  return ["packages", "services"].flatMap((folder) =>
    readdirSync(join(root, folder)).flatMap((member) => {
      const source = join(root, folder, member, "src");
      return readdirSync(source, { recursive: true, encoding: "utf8" })
        .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts") && file !== "names.ts")
        .map((file) => join(source, file));
    }),
  );
}
