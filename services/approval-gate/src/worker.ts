// The approval gate as a value.
import { loadConfig } from "@flotilla/config";
import { defineWorker, type WorkerDefinition } from "@flotilla/worker";
import { createAuditFailures } from "./adapters/audit-metrics.ts";
import { createJournalDecisions } from "./adapters/journal-decisions.ts";
import { openProjectionIndex } from "./adapters/projection-index.ts";
import { createStreamAudit } from "./adapters/stream-audit.ts";
import { ApprovalGateConfig } from "./config.ts";
import { makeGet } from "./functions/get.ts";
import { makeList } from "./functions/list.ts";
import { makeResolve } from "./functions/resolve.ts";

export const definition: WorkerDefinition = {
  name: "approval-gate",
  config: ApprovalGateConfig,
  build({ bus, env, logger, metrics, clock }) {
    const config = loadConfig(ApprovalGateConfig, env);
    const decisions = createJournalDecisions(bus.journal);
    const audit = createStreamAudit({ bus, onFailure: createAuditFailures(metrics) });
    const { index, background } = openProjectionIndex(config.REDIS_URL, logger);
    const now = () => clock.now();
    return defineWorker({
      name: "approval-gate",
      version: "0.1.0",
      drainSeconds: 30,
      functions: [
        makeResolve({ decisions, audit, now }),
        makeGet({ decisions, now }),
        makeList({ decisions, index, now }),
      ],
      background: [background],
    });
  },
};
