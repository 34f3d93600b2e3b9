// The scenarios of the fake upstream that are for this worker.
import { describeScenarios } from "../../../test/upstream/scenario-suite.ts";
import { definition } from "../src/worker.ts";

describeScenarios({
  provider: "openai",
  definition,
  env: (url) => ({ OPENAI_BASE_URL: `${url}/openai`, OPENAI_STALL_TIMEOUT_MS: "5000" }),
});
