// Reads spans out of an OTLP export request: as much of the protobuf wire format as that takes.

export interface OtlpSpan {
  /** `service.name` of the process that sent it. */
  readonly service: string;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for a root. */
  readonly parentId: string;
  readonly attributes: Readonly<Record<string, OtlpValue>>;
  readonly links: readonly { readonly traceId: string; readonly attributes: Readonly<Record<string, OtlpValue>> }[];
  /** 2 is an error. */
  readonly status: number;
}

export type OtlpValue = string | number | boolean | readonly OtlpValue[];

export function readSpans(request: Uint8Array): OtlpSpan[] {
  return messages(request, 1).flatMap((resourceSpans) => {
    const [resource] = messages(resourceSpans, 1);
    const service = String((resource === undefined ? {} : attributesOf(resource, 1))["service.name"] ?? "");
    return messages(resourceSpans, 2).flatMap((scope) => messages(scope, 2).map((span) => spanOf(service, span)));
  });
}

function spanOf(service: string, span: Uint8Array): OtlpSpan {
  const hex = (of: Uint8Array, field: number): string => Buffer.from(messages(of, field)[0] ?? []).toString("hex");
  const [status] = messages(span, 15);
  return {
    service,
    name: textOf(span, 5),
    traceId: hex(span, 1),
    spanId: hex(span, 2),
    parentId: hex(span, 4),
    attributes: attributesOf(span, 9),
    links: messages(span, 13).map((link) => ({ traceId: hex(link, 1), attributes: attributesOf(link, 4) })),
    status: status === undefined ? 0 : numberOf(status, 3),
  };
}

function attributesOf(message: Uint8Array, field: number): Record<string, OtlpValue> {
  const pairs = messages(message, field).map((pair) => [textOf(pair, 1), anyOf(messages(pair, 2)[0])]);
  return Object.fromEntries(pairs) as Record<string, OtlpValue>;
}

function anyOf(value: Uint8Array | undefined): OtlpValue {
  const [first] = value === undefined ? [] : fieldsOf(value);
  if (first === undefined) return "";
  if (typeof first.value === "bigint") return first.number === 2 ? first.value === 1n : Number(first.value);
  if (first.number === 1) return Buffer.from(first.value).toString("utf8");
  if (first.number === 4) return Buffer.from(first.value).readDoubleLE(0);
  return messages(first.value, 1).map(anyOf);
}

function textOf(message: Uint8Array, field: number): string {
  return Buffer.from(messages(message, field)[0] ?? []).toString("utf8");
}

function numberOf(message: Uint8Array, field: number): number {
  const found = fieldsOf(message).find(({ number, value }) => number === field && typeof value === "bigint");
  return Number(found?.value ?? 0);
}

function messages(message: Uint8Array, field: number): Uint8Array[] {
  return fieldsOf(message).flatMap(({ number, value }) =>
    number === field && typeof value !== "bigint" ? [value] : [],
  );
}

interface Field {
  readonly number: number;
  /** A varint, or the bytes of anything else. */
  readonly value: bigint | Uint8Array;
}

function fieldsOf(message: Uint8Array): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++];
      if (byte === undefined) throw new RangeError("the message ends in the middle of a number");
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number): Uint8Array => {
    at += length;
    return message.subarray(at - length, at);
  };
  while (at < message.length) {
    const tag = Number(varint());
    const value = valueByType(tag & 7, varint, take);
    fields.push({ number: tag >>> 3, value });
  }
  return fields;
}

function valueByType(type: number, varint: () => bigint, take: (length: number) => Uint8Array): bigint | Uint8Array {
  if (type === 0) return varint();
  if (type === 1) return take(8);
  if (type === 2) return take(Number(varint()));
  if (type === 5) return take(4);
  throw new RangeError(`wire type ${type} is not known`);
}
