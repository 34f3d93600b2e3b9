// The credentials worker as a value.
import { type Background, defineWorker, type WorkerDefinition } from "@flotilla/worker";
import { createAudit } from "./adapters/audit.ts";
import { type CredentialsFile, createCredentialsFile } from "./adapters/credentials-file.ts";
import { CredentialsConfig, credentialSources } from "./config.ts";
import type { Sources } from "./domain/find-credential.ts";
import { makeGetToken } from "./functions/get-token.ts";
import { makeStatusFunctions } from "./functions/status.ts";

export const definition: WorkerDefinition = {
  name: "auth-credentials",
  config: CredentialsConfig,
  build({ bus, env, logger, clock }) {
    const { path, isRequired, environment } = credentialSources(env);
    const file = createCredentialsFile({ path, isRequired, logger });
    const sources = (): Sources => ({ stored: file.read(), environment });
    return defineWorker({
      name: "auth-credentials",
      version: "0.1.0",
      functions: [makeGetToken({ sources, recordUse: createAudit(bus), clock }), ...makeStatusFunctions(sources)],
      background: [reportOn(file)],
    });
  },
};

/** The file shows on readiness: a broken one degrades the worker and does not stop it. */
function reportOn(file: CredentialsFile): Background {
  return {
    name: "credentials-file",
    start: async () => {},
    stop: async () => {},
    readiness() {
      const problem = file.problem();
      return problem === null ? null : `degraded: ${problem}`;
    },
  };
}
