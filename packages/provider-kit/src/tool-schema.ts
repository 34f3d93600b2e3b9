// A function's JSON schema in the form that vendors take for a tool: an object, without a choice at its top.

type Schema = Record<string, unknown>;

const choices = ["oneOf", "anyOf", "allOf"] as const;

/**
 * Vendors refuse `oneOf`, `anyOf` and `allOf` at the top of a tool's schema: the properties of all variants are offered
 * together, and only what every variant needs is required. The callee checks the real schema anyway.
 */
export function toolSchema(parameters: Schema): Schema {
  const { $schema: _, type: __, ...rest } = parameters;
  const variants = choices.flatMap((key) =>
    Array.isArray(rest[key]) ? (rest[key] as unknown[]).filter(isSchema) : [],
  );
  for (const key of choices) delete rest[key];
  const properties = isSchema(rest.properties) ? rest.properties : {};
  if (variants.length === 0) return { ...rest, type: "object", properties };
  const merged: Schema = { ...properties };
  for (const variant of variants) {
    for (const [name, schema] of Object.entries(isSchema(variant.properties) ? variant.properties : {})) {
      merged[name] = name in merged ? joined(merged[name], schema) : schema;
    }
  }
  const isUnion = !Array.isArray(parameters.allOf);
  const required = isUnion ? inAll(variants) : variants.flatMap(requiredOf);
  const own = requiredOf(parameters);
  return { ...rest, type: "object", properties: merged, required: [...new Set([...own, ...required])] };
}

function joined(first: unknown, second: unknown): unknown {
  if (JSON.stringify(first) === JSON.stringify(second)) return first;
  const known = isSchema(first) && Array.isArray(first.anyOf) ? first.anyOf : [first];
  return { anyOf: [...known, second] };
}

function inAll(variants: readonly Schema[]): string[] {
  const [first, ...others] = variants.map(requiredOf);
  return (first ?? []).filter((name) => others.every((names) => names.includes(name)));
}

function requiredOf(schema: Schema): string[] {
  return Array.isArray(schema.required) ? schema.required.filter((name) => typeof name === "string") : [];
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
