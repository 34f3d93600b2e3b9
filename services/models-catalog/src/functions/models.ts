// models::list, models::get and models::supports
import { modelsGet, modelsList, modelsSupports } from "@flotilla/contracts";
import { type Implementation, implement } from "@flotilla/worker";
import type { Catalog } from "../domain/catalog.ts";

export function makeModelFunctions(catalog: Catalog): Implementation[] {
  return [
    implement(modelsList, (_context, request) => ({ models: catalog.list(request) })),
    implement(modelsGet, (_context, { provider, model_id }) => catalog.get(provider, model_id)),
    implement(modelsSupports, (_context, { provider, model_id, capability }) => ({
      supported: catalog.supports(provider, model_id, capability),
    })),
  ];
}
