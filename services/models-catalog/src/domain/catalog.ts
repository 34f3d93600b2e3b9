// The catalog: rows by provider and id, later files over earlier ones. Pure.
import { Model } from "@flotilla/contracts";
import { z } from "zod";
import { supports } from "./capabilities.ts";

/** A row says where its figures are from and when somebody looked. */
export const CatalogRow = Model.extend({
  source: z.string(),
  checked: z.iso.date(),
  note: z.string().optional(),
}).strict();
export const CatalogFile = z.object({ models: z.array(CatalogRow) });

/** An override: a whole new model, or some fields of a known one. */
export const OverrideFile = z.object({
  models: z.array(CatalogRow.partial().required({ id: true, provider: true })),
});

type Override = z.output<typeof OverrideFile>["models"][number];

export class Catalog {
  readonly #models: ReadonlyMap<string, Model>;

  constructor(rows: readonly Model[]) {
    this.#models = new Map(rows.map((row) => [keyOf(row.provider, row.id), Model.parse(row)]));
  }

  /** Throws a ZodError when a row that is not known yet lacks a field. */
  overriddenBy(overrides: readonly Override[]): Catalog {
    const merged = overrides.map((row) => Model.parse({ ...this.get(row.provider, row.id), ...row }));
    return new Catalog([...this.#models.values(), ...merged]);
  }

  get(provider: string, id: string): Model | null {
    return this.#models.get(keyOf(provider, id)) ?? null;
  }

  list(filter: { provider?: string | undefined; capability?: string | undefined }): Model[] {
    const { provider, capability } = filter;
    return [...this.#models.values()].filter(
      (model) =>
        (provider === undefined || model.provider === provider) &&
        (capability === undefined || supports(model, capability)),
    );
  }

  supports(provider: string, id: string, capability: string): boolean {
    const model = this.get(provider, id);
    return model !== null && supports(model, capability);
  }
}

function keyOf(provider: string, id: string): string {
  return `${provider}\n${id}`;
}
