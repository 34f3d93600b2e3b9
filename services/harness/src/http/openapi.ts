// The OpenAPI 3.1 document, derived from the routes and their schemas. Pure.
import { z } from "zod";
import { Problem, problemType } from "./problem.ts";
import type { Route } from "./route.ts";

type Json = Record<string, unknown>;
type Schemas = Pick<Route, "responses" | "body">;

/** Carries the schema of problem documents, which no route names. */
const problemRoute: Schemas = { responses: { 400: { description: "", schema: Problem } }, body: null };

export function openapiOf(routes: readonly Route[], version: string): Json {
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    const path = paths[route.path] ?? {};
    path[route.method.toLowerCase()] = operationOf(route);
    paths[route.path] = path;
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Flotilla",
      version,
      description: "An agent harness as a fleet of workers: turns, events, approvals.",
    },
    paths,
    components: {
      schemas: { ...namedSchemas(routes), ...namedSchemas([problemRoute]) },
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
    },
    security: [{}, { token: [] }],
  };
}

function operationOf(route: Route): Json {
  const responses: Json = {};
  for (const [status, response] of Object.entries(route.responses)) {
    const schema = response.schema === undefined ? { type: "string" } : schemaOf(response.schema, "output");
    responses[status] = {
      description: response.description,
      content: { [response.type ?? "application/json"]: { schema } },
    };
  }
  const errors = route.role === "public" ? route.errors : [...route.errors, 401, 403];
  for (const status of [...new Set(errors)].sort()) responses[status] ??= problemResponse(status);
  return {
    operationId: route.operation,
    summary: route.summary,
    ...(route.role === "public" ? { security: [] } : { "x-role": route.role }),
    parameters: parametersOf(route),
    ...(route.body === null ? {} : { requestBody: bodyOf(route.body) }),
    responses,
  };
}

function problemResponse(status: number): Json {
  const schema = { $ref: "#/components/schemas/Problem" };
  return { description: `Problem ${status}`, content: { [problemType]: { schema } } };
}

function bodyOf(body: z.ZodType): Json {
  const isOptional = body.safeParse(undefined).success;
  return { required: !isOptional, content: { "application/json": { schema: schemaOf(body, "input") } } };
}

function parametersOf(route: Route): Json[] {
  const headers = Object.entries(route.headers).map(([name, description]) => ({
    in: "header",
    name,
    required: false,
    description,
    schema: { type: "string" },
  }));
  return [...fields(route.params, "path"), ...fields(route.query, "query"), ...headers];
}

function fields(schema: z.ZodType | null, place: "path" | "query"): Json[] {
  if (schema === null) return [];
  const { properties = {}, required = [] } = schemaOf(schema, "input") as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, value]) => ({
    in: place,
    name,
    required: place === "path" || required.includes(name),
    schema: value,
  }));
}

/** JSON Schema of one place; named schemas stand once among the components. */
function schemaOf(schema: z.ZodType, io: "input" | "output"): Json {
  const { $schema: _, $defs: __, id: ___, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return withComponentRefs(rest) as Json;
}

/** The named schemas of a list of routes, by their `id`. */
function namedSchemas(routes: readonly Schemas[]): Json {
  const named: Json = {};
  for (const route of routes) {
    const outputs = Object.values(route.responses).flatMap(({ schema }) => (schema === undefined ? [] : [schema]));
    const inputs = route.body === null ? [] : [route.body];
    for (const [schema, io] of [
      ...outputs.map((output) => [output, "output"] as const),
      ...inputs.map((input) => [input, "input"] as const),
    ]) {
      const { $defs = {} } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
      for (const [name, definition] of Object.entries($defs)) named[name] = withComponentRefs(withoutId(definition));
    }
  }
  return named;
}

function withoutId(definition: object): object {
  const { id: _, ...rest } = definition as { id?: unknown };
  return rest;
}

/** zod refers into its own document; here the definitions live under `components`. */
function withComponentRefs(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withComponentRefs);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) =>
      key === "$ref" && typeof item === "string"
        ? [key, item.replace("#/$defs/", "#/components/schemas/")]
        : [key, withComponentRefs(item)],
    ),
  );
}
