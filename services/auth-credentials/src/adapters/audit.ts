// Who asked for which credential, appended to the AUDIT stream; never the credential.
import { type Bus, createEventLog } from "@flotilla/bus";
import { streamNames, subjects } from "@flotilla/contracts";

export interface CredentialUse {
  /** Epoch ms. */
  readonly at: number;
  readonly action: "auth::get_token";
  readonly caller: string;
  readonly provider: string;
  readonly outcome: "given" | "absent" | "refused";
  readonly source?: string;
  readonly session_id?: string;
  readonly turn_id?: string;
}

/** Contract: resolves when the record is stored; a use that cannot be recorded does not happen. */
export type RecordUse = (use: CredentialUse) => Promise<void>;

const patienceMs = 5_000;

export function createAudit(bus: Pick<Bus, "nc" | "js" | "jsm" | "worker">): RecordUse {
  const log = createEventLog<CredentialUse>(bus, streamNames.audit);
  return async (use) => {
    await log.append(subjects.audit(bus.worker), use, patienceMs);
  };
}
