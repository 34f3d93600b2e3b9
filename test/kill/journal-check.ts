// What a session's journal must look like whoever wrote it: fenced owners, no gap, every effect intended once.
import type { StoredCommit } from "@flotilla/contracts";

/** The problems of one session's commits, in order; none means that the fence held (I2, I4). */
export function checkJournal(commits: readonly StoredCommit[]): string[] {
  return [...checkOwners(commits), ...checkSteps(commits), ...checkLedger(commits)];
}

function checkOwners(commits: readonly StoredCommit[]): string[] {
  const problems: string[] = [];
  let owner = { instance: "", epoch: 0 };
  for (const { seq, kind, commit } of commits) {
    if (kind === "step") continue;
    const { instance, epoch } = commit.owner;
    if (epoch < owner.epoch) problems.push(`commit ${seq} has epoch ${epoch} after ${owner.epoch}`);
    if (epoch === owner.epoch && instance !== owner.instance)
      problems.push(`commit ${seq} is by ${instance} in the epoch of ${owner.instance}`);
    owner = commit.owner;
  }
  return problems;
}

function checkSteps(commits: readonly StoredCommit[]): string[] {
  const problems: string[] = [];
  let cursor = 0;
  for (const [index, { seq, commit }] of commits.entries()) {
    if (commit.seq_no !== index + 1) problems.push(`commit ${seq} is number ${commit.seq_no} instead of ${index + 1}`);
    if (commit.cursor < cursor) problems.push(`the cursor went back in commit ${seq}`);
    cursor = commit.cursor;
  }
  return problems;
}

function checkLedger(commits: readonly StoredCommit[]): string[] {
  const seen = new Set<string>();
  const problems: string[] = [];
  for (const record of commits.flatMap(({ commit }) => commit.ledger)) {
    const name = `${record.kind} of ${record.key ?? record.call_id}`;
    if (seen.has(name)) problems.push(`the ${name} was committed twice`);
    seen.add(name);
  }
  return problems;
}
