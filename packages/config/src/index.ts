export { flag, integer, list, milliseconds, port, seconds, secret } from "./fields.ts";
export { type ConfigProblem, configInvalid, type Env, type LoadConfigOptions, loadConfig } from "./load-config.ts";
export { redacted, Secret } from "./secret.ts";
