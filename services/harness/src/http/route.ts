// A route as a value: path, schemas, role and handler. The server and the OpenAPI document are made from it.
import type { FastifyReply } from "fastify";
import type { z } from "zod";
import type { Identity, Role } from "../domain/tokens.ts";

export interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The handler took the response over (an event stream). */
export const taken = Symbol("taken");

export interface RouteRequest<P, Q, B> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly identity: Identity;
  readonly reply: FastifyReply;
}

export interface RouteResponse {
  readonly description: string;
  readonly schema?: z.ZodType;
  /** @default application/json */
  readonly type?: string;
}

export interface Route {
  readonly method: "GET" | "POST";
  /** OpenAPI form: `/v1/sessions/{sid}`. */
  readonly path: string;
  readonly operation: string;
  readonly summary: string;
  /** `public` needs no token. */
  readonly role: Role | "public";
  readonly params: z.ZodType | null;
  readonly query: z.ZodType | null;
  readonly body: z.ZodType | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly responses: Readonly<Record<number, RouteResponse>>;
  readonly errors: readonly number[];
  handle(request: RouteRequest<never, never, never>): Promise<Answer | typeof taken>;
}

export function defineRoute<
  P extends z.ZodType = z.ZodNull,
  Q extends z.ZodType = z.ZodNull,
  B extends z.ZodType = z.ZodNull,
>(options: {
  method: Route["method"];
  path: string;
  operation: string;
  summary: string;
  role: Route["role"];
  params?: P;
  query?: Q;
  body?: B;
  /** Request headers that count, with a sentence each. */
  headers?: Readonly<Record<string, string>>;
  responses: Readonly<Record<number, RouteResponse>>;
  errors?: readonly number[];
  handle(request: RouteRequest<z.output<P>, z.output<Q>, z.output<B>>): Promise<Answer | typeof taken>;
}): Route {
  const { params = null, query = null, body = null, headers = {}, errors = [], handle, ...rest } = options;
  return { ...rest, params, query, body, headers, errors, handle: handle as unknown as Route["handle"] };
}

export function headerOf(
  headers: RouteRequest<unknown, unknown, unknown>["headers"],
  name: string,
): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}
