import type { Check, Outcome } from "../agent.ts";
import { createReader } from "../reader.ts";
import { createRelayOpener } from "../relay/relay-opener.ts";
import { openWorkspaceChecker } from "../sandbox/workspace-checks.ts";
import type { DeclaredCheck } from "../task.ts";
import { describeText, digestOf, type RequestCheck, testRequest } from "./request-check.ts";
import { cut, mapInOrder, type Steps, type ToolSession, useTool } from "./session.ts";
import { toSuccessCheck } from "./success-check.ts";

/** Result of the success checks for the goal, with a sentence for the end of the session. */
export type GoalResult = { outcome: Outcome; reason: string };

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

/** Checks that need the workspace; skipped if the agent has none. */
async function testWorkspace(
  { task, context: { resources, signal, now } }: ToolSession,
  declaredChecks: DeclaredCheck[],
  when: "before" | "after",
  id: string,
): Promise<{ check: Check; evidence: Evidence | null }[]> {
  if (declaredChecks.length === 0) return [];
  const skipReason = !resources
    ? "the agent has no workspace"
    : "missing" in resources.sandbox
      ? resources.sandbox.missing
      : null;
  const sandbox = resources && "workspace" in resources.sandbox ? resources.sandbox : null;
  // What a check fetches is nothing that the agent read.
  const terms = { task, reader: createReader(task), report: () => {}, now };
  await using relay = sandbox && createRelayOpener(sandbox, terms);
  const proxyOf = async (id: string) => (await relay!.open()).toProxy(id);
  const checker =
    sandbox && (await openWorkspaceChecker(sandbox, proxyOf, task, { isolated: when === "before", signal }));
  const results: { check: Check; evidence: Evidence | null }[] = [];
  try {
    for (const successCheck of declaredChecks) {
      const { command, file = "", exitCode = 0, contains, env } = successCheck;
      const isCommand = command !== undefined;
      const name = cut(isCommand ? command : file, 200);
      const expected = `${isCommand ? `exit code ${exitCode}` : `the file ${name}`}${describeText(contains)}`;
      const subject = `${isCommand ? "command" : "file"} ${name} ${isCommand ? exitCode : ""} ${cut(contains ?? "", 200)}${env ? ` ${digestOf(env)}` : ""}`;
      if (checker === null) {
        const message = `${name} could not be checked: ${skipReason}`;
        results.push({
          check: toSuccessCheck(successCheck, subject, { status: "skip", message, expected }),
          evidence: null,
        });
        continue;
      }
      const { problem, ...evidence } = isCommand
        ? await checker.checkCommand({ command, exitCode, contains, env }, id)
        : await checker.checkFile({ file, contains });
      const check = toSuccessCheck(successCheck, subject, {
        status: problem === null ? "pass" : "fail",
        message: `${name}: ${problem ?? expected}`,
        expected,
        quote: isCommand ? evidence.output.trim().slice(-300) : undefined,
      });
      results.push({ check, evidence: { ...(isCommand ? { command } : { file }), ...evidence } });
    }
  } finally {
    await checker?.close();
  }
  return results;
}
