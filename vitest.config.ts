import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["packages/*/{src,test}/**/*.test.ts", "services/*/{src,test}/**/*.test.ts", "test/**/*.test.ts"],
    retry: 0,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    pool: "forks",
    maxWorkers: 2,
    silent: "passed-only",
  },
});
