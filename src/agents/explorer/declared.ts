import type { Check, DeclaredCheck, Outcome } from "../agent.ts";
import type { Log, MissKind } from "./fetching.ts";
import { cut, inOrder, type Session, type Steps, useTool } from "./session.ts";

/** Result of the success checks for the goal, with a sentence for the end of the session. */
export type Verdict = { outcome: Outcome; reason: string };

type Checker = Pick<Session, "task" | "fetching" | "nextId">;

/** Runs the success checks of a prompt: each requests a URL and expects a status and a text. */
export async function* checkDeclared(session: Checker, when: "before" | "after" = "after"): Steps<Verdict> {
  const { declaredChecks } = session.task;
  if (declaredChecks.length === 0)
    return {
      outcome: "not_judged",
      reason: "The prompt has no declared checks, and the explorer can't verify the goal without them.",
    };
  return yield* useTool(session, "check_declared", { checks: declaredChecks.length }, async (log) => {
    const checks = await inOrder(declaredChecks, 4, log, (declared, own) => test(session, declared, own));
    const failed = checks.filter(({ status }) => status === "fail").length;
    const skipped = checks.filter(({ status }) => status === "skip").length;
    const passed = checks.length - failed - skipped;
    return {
      ok: failed === 0,
      output: { when, passed, failed, skipped },
      checks,
      value: judge(checks.length, failed, skipped),
    };
  });
}

function judge(all: number, failed: number, skipped: number): Verdict {
  if (failed > 0) return { outcome: "goal_not_met", reason: `${failed} of ${all} declared checks failed.` };
  if (skipped > 0) return { outcome: "not_judged", reason: `${skipped} of ${all} declared checks could not run.` };
  return {
    outcome: "succeeded",
    reason: all === 1 ? "The declared check passed." : `All ${all} declared checks passed.`,
  };
}

/** Request failures that say nothing about the check. */
const unmade = new Set<MissKind>(["cut", "aborted", "refused"]);

async function test(
  session: Checker,
  { url, status: wanted = 200, contains, invariant }: DeclaredCheck,
  log: Log,
): Promise<Check> {
  const got = await session.fetching.get({ url, provenance: "given", foundOn: null, purpose: "check" }, log);
  const expected = `status ${wanted}${contains === undefined ? "" : ` and the text "${cut(contains, 100)}"`}`;
  const result = (status: Check["status"], message: string): Check => ({
    id: "declared",
    group: "declared",
    status,
    share: status === "pass" ? 1 : 0,
    weight: 10,
    subject: contains === undefined ? `${url} ${wanted}` : `${url} ${wanted} ${cut(contains, 200)}`,
    url,
    line: null,
    message,
    fix: status === "fail" ? `The prompt expects ${expected}.` : null,
    quote: null,
    ...(invariant && { invariant }),
  });
  if (!got.ok) return result(unmade.has(got.kind) ? "skip" : "fail", got.message);
  const { status } = got.response;
  if (status !== wanted) return result("fail", `${url} answers with status ${status}, not ${wanted}`);
  if (contains !== undefined && !got.text().includes(contains))
    return result("fail", `${url} answers with status ${status}, but its text does not hold "${cut(contains, 100)}"`);
  return result("pass", `${url} answers with ${expected}`);
}
