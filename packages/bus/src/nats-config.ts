// The configuration of a fleet's nats-server: limits, store and one user per worker.
import { randomBytes } from "node:crypto";
import { permissionsOf } from "./permissions.ts";

export interface Login {
  readonly user: string;
  readonly password: string;
}
/** Logins by worker name; `operator` is the one that may do everything. */
export type Credentials = Readonly<Record<string, Login>>;

export const operatorUser = "operator";

export interface NatsConfigOptions {
  readonly port: number;
  readonly storeDir: string;
  readonly credentials: Credentials;
  /** @default 1 */
  readonly shards?: number;
  /** @default "127.0.0.1" */
  readonly host?: string;
  /** Largest message; start-up of a worker refuses less than 2 MB. @default "8MB" */
  readonly maxPayload?: string;
  /** `always` survives a power loss of a single node, at 2.4 times the latency. @default the server's two minutes */
  readonly syncInterval?: string;
}

/** Handlers may run long: a reply may come two hours after its request. */
const responseExpiry = "2h";

/** Fresh random logins for the operator and these workers. */
export function generateCredentials(workers: readonly string[]): Credentials {
  const names = [operatorUser, ...workers];
  return Object.fromEntries(names.map((user) => [user, { user, password: randomBytes(24).toString("base64url") }]));
}

/** The configuration file's text. Contains passwords: keep it readable by its owner only. */
export function renderNatsConfig(options: NatsConfigOptions): string {
  const users = Object.values(options.credentials).map((login) => userBlock(login, options.shards ?? 1));
  const sync = options.syncInterval === undefined ? "" : `, sync_interval: "${options.syncInterval}"`;
  return [
    `host: "${options.host ?? "127.0.0.1"}"`,
    `port: ${options.port}`,
    `max_payload: ${options.maxPayload ?? "8MB"}`,
    "max_pending: 128MB",
    'write_deadline: "10s"',
    `jetstream { store_dir: ${JSON.stringify(options.storeDir)}${sync} }`,
    "authorization {",
    "  users = [",
    ...users,
    "  ]",
    "}",
    "",
  ].join("\n");
}

function userBlock(login: Login, shards: number): string {
  const head = `    { user: ${JSON.stringify(login.user)}, password: ${JSON.stringify(login.password)}`;
  if (login.user === operatorUser) return `${head} }`;
  const { publish, subscribe } = permissionsOf(login.user, { shards });
  const deny = publish.deny.length === 0 ? "" : `, deny: ${JSON.stringify(publish.deny)}`;
  return [
    `${head}, permissions: {`,
    `        publish: { allow: ${JSON.stringify(publish.allow)}${deny} }`,
    `        subscribe: { allow: ${JSON.stringify(subscribe.allow)} }`,
    `        allow_responses: { max: 1, expires: "${responseExpiry}" } } }`,
  ].join("\n");
}
