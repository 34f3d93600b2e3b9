// Environment to configuration: all problems at once, by variable name, and never a value.
import { readFileSync } from "node:fs";
import { FlotillaError } from "@flotilla/errors";
import { z } from "zod";
import { Secret } from "./secret.ts";

export type Env = Readonly<Record<string, string | undefined>>;

export interface ConfigProblem {
  readonly variable: string;
  readonly problem: string;
}

export interface LoadConfigOptions {
  readonly readFile?: (path: string) => string;
}

/**
 * Parses `env` with a zod object schema whose keys are variable names. An empty variable counts as unset. For every
 * variable `X` of the schema, `X_FILE` may name a file that holds the value instead; a `secret()` is read on each use.
 */
export function loadConfig<S extends z.ZodType>(schema: S, env: Env, options: LoadConfigOptions = {}): z.output<S> {
  const problems: ConfigProblem[] = [];
  const input = readInput(schema, env, options.readFile ?? readText, problems);
  const parsed = schema.safeParse(input);
  if (!parsed.success) {
    for (const issue of parsed.error.issues) problems.push({ variable: variableOf(issue), problem: problemOf(issue) });
  }
  if (problems.length > 0 || !parsed.success) throw configInvalid(problems);
  Object.freeze(parsed.data);
  return parsed.data;
}

/** One error for a list of problems; its message has a line for each. */
export function configInvalid(problems: readonly ConfigProblem[]): FlotillaError {
  const lines = problems.map(({ variable, problem }) => `${variable}: ${problem}`);
  return new FlotillaError("CONFIG_INVALID", lines.join("\n"), { details: { problems: [...problems] } });
}

function readInput(
  schema: z.ZodType,
  env: Env,
  readFile: (path: string) => string,
  problems: ConfigProblem[],
): Record<string, unknown> {
  const shape = shapeOf(schema);
  const input: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(shape)) {
    const value = env[name] === "" ? undefined : env[name];
    const fileName = `${name}_FILE`;
    const path = fileName in shape || env[fileName] === "" ? undefined : env[fileName];
    if (value !== undefined && path !== undefined) {
      problems.push({ variable: name, problem: `set either ${name} or ${fileName}, not both` });
    }
    if (value !== undefined) input[name] = value;
    else if (path !== undefined) input[name] = fromFile({ field, path, fileName, readFile, problems });
  }
  return input;
}

function fromFile(source: {
  field: z.ZodType;
  path: string;
  fileName: string;
  readFile: (path: string) => string;
  problems: ConfigProblem[];
}): unknown {
  const read = (): string => source.readFile(source.path).trim();
  try {
    const text = read();
    const secret = new Secret(read);
    return source.field.safeParse(secret).success ? secret : text;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
    source.problems.push({ variable: source.fileName, problem: `the file cannot be read (${code})` });
    return undefined;
  }
}

/** The fields of an object schema, also one that was transformed afterwards. */
function shapeOf(schema: z.ZodType): Record<string, z.ZodType> {
  if (schema instanceof z.ZodObject) return schema.shape as Record<string, z.ZodType>;
  if (schema instanceof z.ZodPipe) return shapeOf(schema.in as z.ZodType);
  throw new TypeError("a configuration schema must be a z.object");
}

function variableOf(issue: z.core.$ZodIssue): string {
  return issue.path[0] === undefined ? "configuration" : String(issue.path[0]);
}

/** Zod's messages name types and allowed values, never the input; a missing value is said in plain words. */
function problemOf(issue: z.core.$ZodIssue): string {
  const isMissing = issue.code === "invalid_type" && issue.message.endsWith("received undefined");
  return isMissing ? "is required" : issue.message;
}

function readText(path: string): string {
  return readFileSync(path, "utf8");
}
