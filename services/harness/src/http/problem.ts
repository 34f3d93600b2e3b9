// Errors as RFC 9457 problem documents with our code and the field to blame. Pure.
import { type FlotillaError, invalidInput } from "@flotilla/errors";
import { z } from "zod";

export const problemType = "application/problem+json";

export const Problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.number().int(),
    detail: z.string(),
    code: z.string().meta({ description: "Our error code, DOMAIN_REASON" }),
    field: z.string().optional().meta({ description: "The one request field to blame, as a dotted path" }),
    retry_after_ms: z.number().optional(),
    details: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: "Problem", description: "RFC 9457 problem document" });
export type Problem = z.infer<typeof Problem>;

export function problemOf(error: FlotillaError): Problem {
  const { code, message, ...rest } = error.toBody();
  return {
    type: `urn:flotilla:error:${code.toLowerCase()}`,
    title: error.row.title,
    status: error.httpStatus,
    detail: message,
    code,
    ...rest,
  };
}

/** The first thing wrong with a request, by field. */
export function invalidRequest(error: z.ZodError, path: readonly PropertyKey[] = []): FlotillaError {
  const issue = error.issues[0];
  if (issue === undefined) return invalidInput("the request is not valid");
  if (issue.code === "unrecognized_keys") {
    const field = [...path, ...issue.path, issue.keys[0] ?? ""].map(String).join(".");
    return invalidInput(`${field} is not a known field`, field);
  }
  const field = [...path, ...issue.path].map(String).join(".");
  return field === "" ? invalidInput(issue.message) : invalidInput(`${field}: ${issue.message}`, field);
}
