// The OpenAPI 3.1 document, derived from the routes and their schemas. Pure.
import { z } from "zod";
import { Problem, problemType } from "../domain/problem.ts";
import type { Route } from "./route.ts";

type Json = Record<string, unknown>;

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
      schemas: { Problem: schemaOf(Problem, "output") },
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

function schemaOf(schema: z.ZodType, io: "input" | "output"): Json {
  // `reused: inline` keeps each schema whole: references would point into the schema, not into the document.
  const {
    $schema: _,
    $defs,
    id: __,
    ...rest
  } = z.toJSONSchema(schema, { io, unrepresentable: "any", reused: "inline" });
  return $defs === undefined ? (rest as Json) : ({ ...rest, $defs } as Json);
}
