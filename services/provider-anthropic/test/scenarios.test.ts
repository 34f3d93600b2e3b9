// The scenarios of the fake upstream that are for this worker.
import { describeScenarios } from "../../../test/upstream/scenario-suite.ts";
import { definition } from "../src/worker.ts";

describeScenarios({
  provider: "anthropic",
  definition,
  env: (url) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_STALL_TIMEOUT_MS: "5000" }),
});
