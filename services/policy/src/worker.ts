// The policy worker as a value.
import { loadConfig } from "@flotilla/config";
import { defineWorker, type WorkerDefinition } from "@flotilla/worker";
import { createGuardedTester } from "./adapters/guarded-regex.ts";
import { readPermissionsFile } from "./adapters/read-file.ts";
import { createReloadMetrics } from "./adapters/reload-metrics.ts";
import { createRulesSource } from "./adapters/rules-source.ts";
import { watchRules } from "./adapters/watch-rules.ts";
import { PolicyConfig, permissionFiles } from "./config.ts";
import { makeCheckPermissions } from "./functions/check-permissions.ts";

export const definition: WorkerDefinition = {
  name: "policy",
  config: PolicyConfig,
  async build({ env, logger, metrics, clock }) {
    const source = createRulesSource({
      paths: permissionFiles(loadConfig(PolicyConfig, env)),
      read: readPermissionsFile,
      logger,
      onOutcome: createReloadMetrics(metrics),
    });
    // Before anything is served: the first call must not meet a worker without rules.
    await source.poll();
    return defineWorker({
      name: "policy",
      version: "0.1.0",
      drainSeconds: 10,
      functions: [makeCheckPermissions({ rules: source.rules, test: createGuardedTester() })],
      background: [watchRules(source, clock)],
    });
  },
};
