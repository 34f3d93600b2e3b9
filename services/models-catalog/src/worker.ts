// The models catalog as a value.
import { loadConfig } from "@flotilla/config";
import { defineWorker, type WorkerDefinition } from "@flotilla/worker";
import { loadCatalog } from "./adapters/load-catalog.ts";
import { CatalogConfig } from "./config.ts";
import { makeModelFunctions } from "./functions/models.ts";

export const definition: WorkerDefinition = {
  name: "models-catalog",
  config: CatalogConfig,
  build({ env }) {
    const config = loadConfig(CatalogConfig, env);
    return defineWorker({
      name: "models-catalog",
      version: "0.1.0",
      functions: makeModelFunctions(loadCatalog(config.FLOTILLA_MODELS_FILE)),
    });
  },
};
