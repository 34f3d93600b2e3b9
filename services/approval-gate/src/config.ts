// Configuration of the approval gate.
import { z } from "zod";

export const ApprovalGateConfig = z.object({
  /** Without it approval::list answers for one session at a time only. */
  REDIS_URL: z.url({ protocol: /^rediss?$/, error: "must be a redis:// or rediss:// URL" }).optional(),
});
export type ApprovalGateConfig = z.output<typeof ApprovalGateConfig>;
