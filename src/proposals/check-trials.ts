import { rm } from "node:fs/promises";
import { secretNamesOf } from "../agents/check-secrets.ts";
import { detectSandbox } from "../agents/sandbox/sandbox.ts";
import { openWorkspaceChecker, type WorkspaceChecker } from "../agents/sandbox/workspace-checks.ts";
import { createTemporaryFolder } from "../agents/sockets.ts";
import type { DeclaredCheck } from "../agents/task.ts";
import { decideLimits } from "../config/limits.ts";
import type { Context, OrgId } from "../context.ts";
import { reasonOf } from "../errors.ts";
import type { RunHost } from "../runs/attempt.ts";
import { readSecrets } from "../secrets/secrets.ts";
import type { TaskProposal } from "./proposal.ts";
import { runRequestChecks } from "./reading.ts";
import type { ProposalRequest } from "./schema.ts";

/** The result of a check before any agent worked. `notRun`: why it couldn't run. */
type Trial = { passes: boolean; notRun: string | null };

/** How long the commands of all checks may take together. */
const commandsMs = 30_000;

type TrialRequest = { org: OrgId; id: string; request: ProposalRequest; stop: AbortSignal };

/**
 * Runs the checks of proposals against the product as it is. A check that already passes proves nothing and is removed. If no other check of its
 * proposal is left, the goal is already met and the proposal is dropped, unless creating one more is still a task. Returns the remaining proposals,
 * and how many were dropped.
 */
export async function tryChecks(
  ctx: Context,
  host: RunHost,
  proposals: TaskProposal[],
  trialRequest: TrialRequest,
): Promise<{ proposals: TaskProposal[]; droppedCount: number }> {
  const checks = proposals.flatMap(({ declaredChecks }) => declaredChecks);
  if (checks.length === 0) return { proposals, droppedCount: 0 };
  const requests = checks.filter(({ url, method = "GET" }) => url !== undefined && method === "GET");
  const commands = checks.filter(({ url }) => url === undefined);
  const trials = new Map([
    ...zip(requests, await tryRequests(ctx, host, requests, trialRequest)),
    ...zip(commands, await tryCommands(ctx, commands, trialRequest.stop)),
  ]);
  const remaining = proposals.flatMap((proposal): TaskProposal[] => {
    const declaredChecks = proposal.declaredChecks.filter((check) => !trials.get(check)?.passes);
    const isMet = declaredChecks.length === 0 && proposal.declaredChecks.length > 0;
    if (isMet && proposal.why !== "operation") return [];
    return [{ ...proposal, declaredChecks, checksNotRun: reasonNotRun(declaredChecks, trials) }];
  });
  return { proposals: remaining, droppedCount: proposals.length - remaining.length };
}

const zip = (checks: DeclaredCheck[], trials: Trial[]): [DeclaredCheck, Trial][] =>
  checks.flatMap((check, i) => (trials[i] ? [[check, trials[i]]] : []));

function reasonNotRun(checks: DeclaredCheck[], trials: Map<DeclaredCheck, Trial>): string | null {
  for (const check of checks) {
    const trial = trials.get(check);
    // Only requests that may change something are not tried.
    if (trial === undefined) return "its request may change something";
    if (trial.notRun !== null) return trial.notRun;
  }
  return null;
}

/** The results of requests, in the same order. The requests use the stored secrets. */
async function tryRequests(
  ctx: Context,
  host: RunHost,
  declaredChecks: DeclaredCheck[],
  { org, id, request, stop }: TrialRequest,
): Promise<Trial[]> {
  if (declaredChecks.length === 0) return [];
  const secrets = readSecrets(ctx, org, secretNamesOf(declaredChecks));
  const unrestrictedName = Object.keys(secrets).find((name) => secrets[name]?.hosts === null);
  // The address of a check comes from docs that nobody has reviewed yet.
  if (unrestrictedName !== undefined) {
    const notRun = `the secret ${unrestrictedName} may go to any host, so it is sent nowhere before you create the prompt`;
    return declaredChecks.map(() => ({ passes: false, notRun }));
  }
  const results = await runRequestChecks(ctx, host, `${id}-checks`, request, { declaredChecks, secrets }, stop);
  return results.map(({ status, message }) => ({
    passes: status === "pass",
    notRun: status === "skip" ? message : null,
  }));
}

/** The results of commands and files, in the same order, in an empty workspace without network, on this machine. */
async function tryCommands(ctx: Context, checks: DeclaredCheck[], stop: AbortSignal): Promise<Trial[]> {
  if (checks.length === 0) return [];
  const { level, detail } = await detectSandbox();
  if (level === "none") return checks.map(() => ({ passes: false, notRun: detail }));
  const { folder } = createTemporaryFolder("checks");
  const limit = AbortSignal.timeout(commandsMs);
  const signal = AbortSignal.any([stop, limit]);
  try {
    const sandbox = { workspace: { path: folder, holder: null }, folder };
    const task = { limits: decideLimits(null, ctx.config) };
    const checker = await openWorkspaceChecker(sandbox, task, { isolated: false, signal });
    const trials: Trial[] = [];
    for (const check of checks)
      try {
        trials.push(await tryCommand(checker, check));
      } catch (error) {
        stop.throwIfAborted();
        const notRun = limit.aborted ? "the commands of all checks took too long" : reasonOf(error);
        trials.push({ passes: false, notRun });
      }
    return trials;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function tryCommand(checker: WorkspaceChecker, check: DeclaredCheck): Promise<Trial> {
  if (secretNamesOf([check]).length > 0) return { passes: false, notRun: "it needs a secret" };
  const { command, file = "", exitCode, contains } = check;
  const { problem } =
    command === undefined
      ? await checker.checkFile({ file, contains })
      : await checker.checkCommand({ command, exitCode, contains }, null);
  return { passes: problem === null, notRun: null };
}
