import type { Check, Outcome } from "../agent.ts";
import { fillSecrets, secretNamesOf } from "../check-secrets.ts";
import { createReader } from "../reader.ts";
import { createRelayOpener } from "../relay/relay-opener.ts";
import type { SandboxProxy } from "../sandbox/sandbox.ts";
import { openWorkspaceChecker, type WorkspaceChecker } from "../sandbox/workspace-checks.ts";
import type { DeclaredCheck } from "../task.ts";
import { describeProblem, describeText, digestOf, type RequestCheck, testRequest } from "./request-check.ts";
import { cut, mapInOrder, type Steps, type ToolSession, useTool } from "./session.ts";
import { toSuccessCheck } from "./success-check.ts";

/** Result of the success checks for the goal, with a sentence for the end of the session. */
type GoalResult = { outcome: Outcome; reason: string };

/** Runs the success checks of a prompt: requests first, then commands and files one after the other. */
export async function* runSuccessChecks(session: ToolSession, when: "before" | "after" = "after"): Steps<GoalResult> {
  const { declaredChecks } = session.task;
  if (declaredChecks.length === 0)
    return {
      outcome: "not_judged",
      reason: "The prompt has no success checks, and the explorer can't verify the goal without them.",
    };
  return yield* useTool(session, "check_declared", { checks: declaredChecks.length }, async (log) => {
    const requests = declaredChecks.filter(
      (successCheck): successCheck is RequestCheck => successCheck.url !== undefined,
    );
    const requestChecks = await mapInOrder(requests, 4, log, (successCheck, itemLog) =>
      testRequest(session, successCheck, itemLog),
    );
    const workspaceChecks = declaredChecks.filter(({ url }) => url === undefined);
    const outputs = await testWorkspace(session, workspaceChecks, when, log.id ?? "");
    const checks = [...requestChecks, ...outputs.map(({ check }) => check)];
    const failedCount = checks.filter(({ status }) => status === "fail").length;
    const skippedCount = checks.filter(({ status }) => status === "skip").length;
    const passedCount = checks.length - failedCount - skippedCount;
    return {
      ok: failedCount === 0,
      output: {
        when,
        passed: passedCount,
        failed: failedCount,
        skipped: skippedCount,
        ...(outputs.length > 0 && { workspace: outputs.flatMap(({ evidence }) => evidence ?? []) }),
      },
      checks,
      value: toGoalResult(checks.length, failedCount, skippedCount),
    };
  });
}

function toGoalResult(total: number, failed: number, skipped: number): GoalResult {
  if (failed > 0) return { outcome: "goal_not_met", reason: `${failed} of ${total} success checks failed.` };
  if (skipped > 0) return { outcome: "not_judged", reason: `${skipped} of ${total} success checks could not run.` };
  return {
    outcome: "succeeded",
    reason: total === 1 ? "The success check passed." : `All ${total} success checks passed.`,
  };
}

type Evidence = { command?: string; file?: string; exitCode: number; output: string };

type WorkspaceResult = { check: Check; evidence: Evidence | null };

/**
 * Tests the checks that need the workspace, or skips them if the agent has none. Checks with secrets come last, because what they leave in files is
 * not kept.
 */
async function testWorkspace(
  { task, context: { resources, signal, now, checkSecrets = {} } }: ToolSession,
  declaredChecks: DeclaredCheck[],
  when: "before" | "after",
  id: string,
): Promise<WorkspaceResult[]> {
  if (declaredChecks.length === 0) return [];
  const hasSecrets = (check: DeclaredCheck) => secretNamesOf([check]).length > 0;
  const ordered = [
    ...declaredChecks.filter((check) => !hasSecrets(check)),
    ...declaredChecks.filter((check) => hasSecrets(check)),
  ];
  const sandbox = resources?.sandbox ?? { missing: "the agent has no workspace" };
  if ("missing" in sandbox) return ordered.map((check) => toSkipped(check, sandbox.missing));
  // The agent didn't read what a check fetches.
  const terms = { task, reader: createReader(task), report: () => {}, now };
  await using relay = createRelayOpener(sandbox, terms);
  // Files that the agent left in the workspace may send a secret in any disguise, so these requests are not recorded.
  const egress = sandbox.setupEgress;
  await using silentRelay = egress && createRelayOpener({ ...sandbox, egress }, { ...terms, secrets: checkSecrets });
  const proxyOf = async (isSecret: boolean) =>
    isSecret && silentRelay ? (await silentRelay.open()).toProxy() : (await relay.open()).toProxy(id);
  const checker = await openWorkspaceChecker(sandbox, task, { isolated: when === "before", signal });
  const results: WorkspaceResult[] = [];
  try {
    for (const declared of ordered) {
      const filled = fillSecrets(declared, checkSecrets);
      if ("problem" in filled) results.push(toSkipped(declared, describeProblem(filled.problem)));
      else results.push(await testOne(checker, declared, filled, proxyOf));
    }
  } finally {
    await checker.close();
  }
  return results;
}

/** What a check in the workspace expects, and what identifies it. */
function describe({ command, file = "", exitCode = 0, contains, env }: DeclaredCheck) {
  const isCommand = command !== undefined;
  const name = cut(isCommand ? command : file, 200);
  const digest = env ? ` ${digestOf(env)}` : "";
  return {
    name,
    expected: `${isCommand ? `exit code ${exitCode}` : `the file ${name}`}${describeText(contains)}`,
    subject: `${isCommand ? "command" : "file"} ${name} ${isCommand ? exitCode : ""} ${cut(contains ?? "", 200)}${digest}`,
  };
}

function toSkipped(declared: DeclaredCheck, reason: string): WorkspaceResult {
  const { name, expected, subject } = describe(declared);
  const message = `${name} could not be checked: ${reason}`;
  return { check: toSuccessCheck(declared, subject, { status: "skip", message, expected }), evidence: null };
}

/** `filled`: the check with its secrets. The output of a command with secrets is not kept, because it may contain them in any disguise. */
async function testOne(
  checker: WorkspaceChecker,
  declared: DeclaredCheck,
  { command, file = "", exitCode, contains, env }: DeclaredCheck,
  proxyOf: (hasSecrets: boolean) => Promise<SandboxProxy>,
): Promise<WorkspaceResult> {
  const { name, expected, subject } = describe(declared);
  const isCommand = command !== undefined;
  const hasSecrets = secretNamesOf([declared]).length > 0;
  const {
    problem,
    exitCode: endCode,
    output,
  } = isCommand
    ? await checker.checkCommand({ command, exitCode, contains, env }, await proxyOf(hasSecrets))
    : await checker.checkFile({ file, contains });
  const keptOutput = hasSecrets ? "" : output;
  const check = toSuccessCheck(declared, subject, {
    status: problem === null ? "pass" : "fail",
    message: `${name}: ${problem ?? expected}`,
    expected,
    quote: isCommand ? keptOutput.trim().slice(-300) : "",
  });
  return { check, evidence: { ...(isCommand ? { command } : { file }), exitCode: endCode, output: keptOutput } };
}
