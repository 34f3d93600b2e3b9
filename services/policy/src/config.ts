// Which permissions files the policy worker looks at, in order.
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";

export const PolicyConfig = z.object({
  /** When set, only this file counts: one that is missing is a fault, never a reason to take another. */
  FLOTILLA_PERMISSIONS: z.string().min(1).optional(),
  FLOTILLA_HOME: z.string().min(1).default(".flotilla"),
});
export type PolicyConfig = z.output<typeof PolicyConfig>;

export const shippedPermissions = fileURLToPath(new URL("../permissions.yaml", import.meta.url));

/** In order of precedence; the first that exists counts. */
export function permissionFiles(config: PolicyConfig): string[] {
  if (config.FLOTILLA_PERMISSIONS !== undefined) return [resolve(config.FLOTILLA_PERMISSIONS)];
  return [resolve(config.FLOTILLA_HOME, "permissions.yaml"), shippedPermissions];
}
