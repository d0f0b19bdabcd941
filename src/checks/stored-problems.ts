import { asc, eq, sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import { transaction } from "../db/open.ts";
import { checkProblems } from "../db/tables/checks.ts";
import { type CheckId, type CheckResult, checkIds } from "./checks.ts";
import { type CheckState, isProblem } from "./finding.ts";
import { type Cause, causes } from "./problems.ts";

/** A problem that the checks of the service found. `since`: when it was first found, epoch milliseconds. */
type StoredProblem = CheckResult & { cause: Cause; since: number };

/** The problems that the checks of the service found at their last run, without those that only another version of evald knows. */
export const listStoredProblems = ({ db }: Context): StoredProblem[] =>
  db
    .select()
    .from(checkProblems)
    .orderBy(asc(checkProblems.since), asc(checkProblems.check), asc(checkProblems.subject))
    .all()
    .map((row) => ({
      ...row,
      check: row.check as CheckId,
      cause: row.cause as Cause,
      subject: row.subject || null,
      state: row.state as CheckState,
    }))
    .filter(({ check, cause }) => checkIds.includes(check) && causes.includes(cause));

/** Stores what checks found, in place of what they had found before. `ids`: the checks that ran. */
export function storeProblems(ctx: Context, ids: ReadonlySet<CheckId>, results: CheckResult[]): void {
  const before = listStoredProblems(ctx).filter(({ check }) => ids.has(check));
  const problems = results.filter(isProblem);
  if (before.length + problems.length === 0) return;
  transaction(ctx.db, (tx) => {
    for (const id of ids) tx.delete(checkProblems).where(eq(checkProblems.check, id)).run();
    for (const { check, cause, subject, state, detail } of problems) {
      if (cause === null) continue;
      const same = before.find((each) => each.check === check && each.cause === cause && each.subject === subject);
      tx.insert(checkProblems)
        .values({ check, cause, subject: subject ?? "", state, detail, since: same?.since ?? ctx.now() })
        .onConflictDoUpdate({
          target: [checkProblems.check, checkProblems.cause, checkProblems.subject],
          set: { detail: sql`excluded.detail` },
        })
        .run();
    }
  });
}
