// What the models catalog reads from its environment.
import { z } from "zod";

export const CatalogConfig = z.object({
  /** JSON `{"models": [...]}` laid over the shipped rows; read at start. */
  FLOTILLA_MODELS_FILE: z.string().min(1).optional(),
});
export type CatalogConfig = z.output<typeof CatalogConfig>;
