import { and, eq } from "drizzle-orm";
import { changesOf, recordAudit } from "../audit/entries.ts";
import { listMemberEmails } from "../auth/members.ts";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { inboxMarks } from "../db/tables/inbox.ts";
import { invalidField, notFound } from "../errors.ts";
import type { Spending } from "../runs/schema.ts";
import { getSpending } from "../runs/spending.ts";
import { toIso } from "../schema.ts";
import { joinSameReason, listFailedRuns } from "./failed-runs.ts";
import {
  listAllSchedulesPaused,
  listAwayWorkers,
  listChangedBases,
  listFailedChecks,
  listFailingBackups,
  listFailingDestinations,
  listPausedRuns,
  listPausedSchedules,
  listSpentBudgets,
  listUnreadableSecrets,
  listWaitingRuns,
  listWorseCalibrations,
  type Problem,
} from "./problems.ts";
import type { Inbox, InboxItem, InboxMark, ScoreChange } from "./schema.ts";
import { listScoreChanges } from "./score-changes.ts";
import { listDriftedComparisons } from "./self-comparisons.ts";

/** The weight of each problem. A change of the score by one point weighs 1. */
function weightOf(problem: Problem): number {
  switch (problem.kind) {
    case "score_fell":
    case "score_rose":
      return Math.abs(problem.delta);
    case "runs_failed":
      return problem.failed === problem.of ? Math.min(15, 5 + 2 * problem.failed) : (3 * problem.failed) / problem.of;
    case "runs_waiting":
      return Math.min(15, 5 + 2 * problem.runs);
    case "runs_paused":
    case "worker_away":
      return 8;
    case "budget_spent":
      return problem.spentUsd >= problem.maxUsd ? 20 : 4;
    case "secrets_unreadable":
      return 20;
    case "check_failed":
      return problem.state === "failed" ? 12 : 4;
    case "backup_failing":
      return 15;
    case "schedule_paused":
    case "all_schedules_paused":
      return 10;
    case "calibration_worse":
      return 12;
    case "false_alarms":
      return problem.drift === "explorer" ? 12 : 8;
    case "basis_changed":
      return 3;
    case "destination_failing":
      return problem.isDisabled ? 5 : 3;
  }
}

type Mark = typeof inboxMarks.$inferSelect;

const addMark = <T extends Problem>(problem: T, mark: Mark | undefined) => ({
  ...problem,
  snoozedUntil: toIso(mark?.snoozedUntil ?? null),
  assignee: mark?.assignee ?? null,
  markedBy: mark?.markedBy ?? null,
  markedAt: toIso(mark?.markedAt ?? null),
});

/** Worst first. */
const listProblems = (ctx: Context, org: OrgId, changes: Problem[], spending: Spending): Problem[] =>
  [
    ...changes.filter(({ kind }) => kind === "score_fell"),
    ...joinSameReason(listFailedRuns(ctx, org)),
    ...listPausedSchedules(ctx, org),
    ...listAllSchedulesPaused(ctx, org),
    ...listChangedBases(ctx, org),
    ...listDriftedComparisons(ctx, org),
    ...listWorseCalibrations(ctx, org),
    ...listUnreadableSecrets(ctx, org),
    ...listFailingBackups(ctx, org),
    ...listFailedChecks(ctx),
    ...listWaitingRuns(ctx, org),
    ...listPausedRuns(ctx, org),
    ...listAwayWorkers(ctx, org),
    ...listSpentBudgets(ctx, org, spending),
    ...listFailingDestinations(ctx, org),
  ].sort((a, b) => weightOf(b) - weightOf(a));

/** The problems of an organization, worst first, with its improvements and the spending of the month. */
export function getInbox(ctx: Context, org: OrgId, { withSnoozed = false }: { withSnoozed?: boolean } = {}): Inbox {
  const rows = ctx.db.select().from(inboxMarks).where(eq(inboxMarks.orgId, org)).all();
  const marks = new Map(rows.map((mark) => [mark.itemId, mark]));
  const changes = listScoreChanges(ctx, org);
  const spending = getSpending(ctx, org);
  const { spentUsd, maxUsdAMonth, expectedUsd, until } = spending;
  const items = listProblems(ctx, org, changes, spending).map(
    (problem) => addMark(problem, marks.get(problem.id)) as InboxItem,
  );
  const isSnoozed = ({ snoozedUntil }: InboxItem) => snoozedUntil !== null && Date.parse(snoozedUntil) > ctx.now();
  return {
    problems: withSnoozed ? items : items.filter((item) => !isSnoozed(item)),
    snoozed: withSnoozed ? 0 : items.filter(isSnoozed).length,
    improvements: changes
      .filter(({ kind }) => kind === "score_rose")
      .sort((a, b) => b.delta - a.delta)
      .map((change) => addMark(change, marks.get(change.id)) as ScoreChange),
    spending: { spentUsd, maxUsd: maxUsdAMonth, expectedUsd, until },
  };
}

/** Snoozes or assigns a problem. Omitted fields keep their values. `by`: who did it. Throws not_found and bad_request. */
export function markInboxItem(ctx: Context, org: OrgId, itemId: string, mark: InboxMark, by: string): InboxItem {
  const problems = listProblems(ctx, org, listScoreChanges(ctx, org), getSpending(ctx, org));
  const problem = problems.find(({ id }) => id === itemId);
  if (!problem) throw notFound(`No item of the inbox has the ID ${itemId}. The problem may be gone.`);
  if (mark.assignee && !listMemberEmails(ctx, org).includes(mark.assignee.toLowerCase()))
    throw invalidField("assignee", `${mark.assignee} is not the email address of a member`);
  const whereMark = and(eq(inboxMarks.orgId, org), eq(inboxMarks.itemId, itemId));
  const earlier = ctx.db.select().from(inboxMarks).where(whereMark).get();
  const { snoozedUntil = toIso(earlier?.snoozedUntil ?? null), assignee = earlier?.assignee ?? null } = mark;
  const row: Mark = {
    orgId: org,
    itemId,
    snoozedUntil: snoozedUntil === null ? null : Date.parse(snoozedUntil),
    assignee: assignee?.toLowerCase() ?? null,
    markedBy: by,
    markedAt: ctx.now(),
  };
  transaction(ctx.db, (tx) => {
    tx.insert(inboxMarks)
      .values(row)
      .onConflictDoUpdate({ target: [inboxMarks.orgId, inboxMarks.itemId], set: row })
      .run();
    const changes = changesOf(
      { snoozedUntil: toIso(earlier?.snoozedUntil ?? null), assignee: earlier?.assignee },
      { snoozedUntil: toIso(row.snoozedUntil), assignee: row.assignee },
    );
    recordAudit(ctx, org, "inbox_item.marked", { id: itemId }, changes);
  });
  return addMark(problem, row) as InboxItem;
}
