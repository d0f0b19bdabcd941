import { and, count, desc, eq, gte, isNotNull, isNull, lt, ne, or, sql } from "drizzle-orm";
import { hasOperator } from "../auth/members.ts";
import { hasOneOrg } from "../auth/orgs.ts";
import { findBackupProblem } from "../backups/backups.ts";
import { listWorse } from "../calibration/calibrations.ts";
import { adviceFor } from "../checks/advice.ts";
import { problemOf } from "../checks/problems.ts";
import { listStoredProblems } from "../checks/stored-problems.ts";
import type { Context, OrgId } from "../context.ts";
import { firstIdOf } from "../db/rows.ts";
import { deliveries, deliveryTries, destinations } from "../db/tables/notifications.ts";
import { prompts } from "../db/tables/prompts.ts";
import { runs } from "../db/tables/runs.ts";
import { countUnreadableSecrets } from "../notifications/secrets.ts";
import { titleText } from "../prompts/lists.ts";
import { findPausedAt } from "../prompts/warnings.ts";
import { titleOf } from "../reports/labels.ts";
import { listPauses } from "../runs/pauses.ts";
import type { Spending } from "../runs/schema.ts";
import { getScheduleState } from "../schedules/schedules.ts";
import { toIso } from "../schema.ts";
import { listBudgets } from "../spending/budgets.ts";
import type { InboxItem, Unmarked } from "./schema.ts";

const dayMs = 24 * 3600_000;
/** How long a waiting run, or an absent worker, counts as a problem. */
const recentMs = 7 * dayMs;
/** The share of the monthly budget at which spending becomes a problem. */
const minBudgetShare = 0.8;
/** How long a run must wait for a worker, or a worker must be absent, before that is a problem. */
const minWaitMs = 5 * 60_000;

/** An item of the inbox that is a problem. */
export type Problem = Unmarked<InboxItem>;

/** The prompts whose schedule evald paused. */
export function listPausedSchedules(ctx: Context, org: OrgId): Problem[] {
  const rows = ctx.db
    .select({ id: prompts.id, title: prompts.title, text: titleText })
    .from(prompts)
    .where(and(eq(prompts.orgId, org), eq(prompts.status, "paused"), isNotNull(prompts.frequency)))
    .all();
  return rows.flatMap(({ id, ...prompt }): Problem[] => {
    const pausedAt = findPausedAt(ctx, org, id);
    if (pausedAt === null) return [];
    const since = toIso(pausedAt);
    return [
      { kind: "schedule_paused", id: `schedule-${id}-${pausedAt}`, since, prompt: { id, title: titleOf(prompt) } },
    ];
  });
}

/** The prompts whose source text in the docs has changed. */
export function listChangedBases(ctx: Context, org: OrgId): Problem[] {
  const { id, title, basis, basisChange } = prompts;
  const rows = ctx.db
    .select({ id, title, text: titleText, basis, basisChange })
    .from(prompts)
    .where(and(eq(prompts.orgId, org), ne(prompts.status, "archived"), isNotNull(basisChange)))
    .all();
  return rows.flatMap(({ id, basis, basisChange, ...texts }): Problem[] => {
    if (basis === null || basisChange === null) return [];
    const { url, line, quote } = basis;
    const { runId, at } = basisChange;
    const prompt = { id, title: titleOf(texts) };
    return [{ kind: "basis_changed", id: `basis-${runId}`, since: toIso(at), prompt, url, line, quote, runId }];
  });
}

/** The agents whose newest calibration is significantly worse than the one before. */
export const listWorseCalibrations = (ctx: Context, org: OrgId): Problem[] =>
  listWorse(ctx, org).map(({ id, agent, model, worse, completedAt, createdAt }) => ({
    kind: "calibration_worse",
    id: `calibration-${id}`,
    since: toIso(completedAt ?? createdAt),
    calibrationId: id,
    agent,
    model,
    worse: (worse ?? []).map(({ figure }) => figure),
  }));

/** The schedules of the organization as one problem, while somebody has paused all of them. */
export function listAllSchedulesPaused(ctx: Context, org: OrgId): Problem[] {
  const { pausedAt, schedules } = getScheduleState(ctx, org);
  if (pausedAt === null || schedules === 0) return [];
  return [{ kind: "all_schedules_paused", id: `schedules-${Date.parse(pausedAt)}`, since: pausedAt, schedules }];
}

/** The secrets of the organization that can't be decrypted. It is unknown since when. */
export function listUnreadableSecrets(ctx: Context, org: OrgId): Problem[] {
  const { modelKeys, destinations } = countUnreadableSecrets(ctx, org);
  if (modelKeys + destinations === 0) return [];
  const isKeyMissing = !ctx.config.secretKey;
  return [
    { kind: "secrets_unreadable", id: "secrets", since: toIso(ctx.now()), isKeyMissing, modelKeys, destinations },
  ];
}

/** Scheduled backups that fail or are late. They are shown to the only organization, or to organizations with an operator. */
export function listFailingBackups(ctx: Context, org: OrgId): Problem[] {
  const problem = findBackupProblem(ctx);
  if (problem === null || !(hasOneOrg(ctx) || hasOperator(ctx, org))) return [];
  const { since, failures, failure, lastAt } = problem;
  const lastBackupAt = toIso(lastAt);
  return [{ kind: "backup_failing", id: `backup-${since}`, since: toIso(since), failures, failure, lastBackupAt }];
}

/** The problems that the checks of the installation found, by cause. They are for the operator. */
export function listFailedChecks(ctx: Context): Problem[] {
  const findings = listStoredProblems(ctx).filter(({ cause }) => problemOf(cause).isForInbox !== false);
  if (findings.length === 0 || !hasOneOrg(ctx)) return [];
  return [...Map.groupBy(findings, ({ cause }) => cause)].flatMap(([cause, findingsOfCause]): Problem[] => {
    const [first] = findingsOfCause;
    if (!first) return [];
    const { check, subject, detail, since } = first;
    const { state } = problemOf(cause);
    return [
      {
        kind: "check_failed",
        id: `check-${cause}-${since}`,
        since: toIso(since),
        check,
        cause,
        state,
        subject,
        detail,
        findings: findingsOfCause.length,
        ...adviceFor(cause, subject),
      },
    ];
  });
}

/** The destinations whose last try failed, or that failures have disabled. */
export function listFailingDestinations(ctx: Context, org: OrgId): Problem[] {
  const rows = ctx.db
    .select()
    .from(destinations)
    .where(
      and(
        eq(destinations.orgId, org),
        isNotNull(destinations.failingSince),
        or(isNull(destinations.disabledAt), ne(destinations.disableReason, "request")),
      ),
    )
    .all();
  return rows.map(({ id, name, kind, url, disabledAt, failingSince }): Problem => {
    const isToDestination = and(eq(deliveries.orgId, org), eq(deliveries.destinationId, id));
    const { pending } = ctx.db
      .select({ pending: count() })
      .from(deliveries)
      .where(and(isToDestination, eq(deliveries.status, "pending")))
      .get() ?? { pending: 0 };
    const lastTry = ctx.db
      .select({ status: deliveryTries.status, error: deliveryTries.error })
      .from(deliveryTries)
      .innerJoin(deliveries, eq(deliveries.id, deliveryTries.deliveryId))
      .where(isToDestination)
      .orderBy(desc(deliveryTries.at))
      .limit(1)
      .get();
    return {
      kind: "destination_failing",
      id: `destination-${id}-${failingSince}`,
      since: toIso(failingSince ?? disabledAt ?? 0),
      destination: { id, name, kind, url },
      isDisabled: disabledAt !== null,
      pending,
      status: lastTry?.status ?? null,
      error: lastTry?.error ?? null,
    };
  });
}

/** The monthly budgets that are almost spent: the budget of the organization, and the budgets of prompts and tags. */
export function listSpentBudgets(ctx: Context, org: OrgId, { from, spentUsd, maxUsdAMonth }: Spending): Problem[] {
  const ofOrg = maxUsdAMonth === null ? [] : [{ id: "budget", spentUsd, maxUsd: maxUsdAMonth, budget: null }];
  const others = listBudgets(ctx, org).map(({ id, promptId, tag, name, spentUsd, maxUsdAMonth }) => ({
    id: `budget-${id}`,
    spentUsd,
    maxUsd: maxUsdAMonth,
    budget: { promptId, tag, name },
  }));
  return [...ofOrg, ...others]
    .filter(({ spentUsd, maxUsd }) => spentUsd >= minBudgetShare * maxUsd)
    .map(({ id, ...budget }) => ({ kind: "budget_spent", id: `${id}-${from}`, since: from, ...budget }));
}

/** Runs that no connected worker can execute, by agent. */
export function listWaitingRuns(ctx: Context, org: OrgId): Problem[] {
  const waitingRuns = ctx.db
    .select({ id: runs.id, agent: runs.agent, at: runs.createdAt })
    .from(runs)
    .where(
      and(
        eq(runs.orgId, org),
        isNull(runs.completedAt),
        lt(runs.createdAt, ctx.now() - minWaitMs),
        sql`json_extract(${runs.waitingFor}, '$.what') = 'worker'`,
      ),
    )
    // The plus keeps SQLite from using an index for this order, because it would then read all runs.
    .orderBy(sql`+${runs.id}`)
    .all();
  return [...Map.groupBy(waitingRuns, ({ agent }) => agent)].flatMap(([agent, runsOfAgent]): Problem[] => {
    const [oldest] = runsOfAgent;
    if (!oldest) return [];
    const { id, at } = oldest;
    return [
      { kind: "runs_waiting", id: `waiting-${id}`, since: toIso(at), runs: runsOfAgent.length, agent, runId: id },
    ];
  });
}

/** The pauses of the organization, and pauses of agents that hold back some of its runs. */
export function listPausedRuns(ctx: Context, org: OrgId): Problem[] {
  return listPauses(ctx.db).flatMap(({ kind, subject, reason, createdAt }): Problem[] => {
    if (kind === "organization" && subject !== org) return [];
    const agent = kind === "agent" ? subject : null;
    const waitingRuns = ctx.db
      .select({ id: runs.id })
      .from(runs)
      .where(
        and(
          eq(runs.orgId, org),
          isNull(runs.completedAt),
          sql`json_extract(${runs.waitingFor}, '$.what') = ${kind === "agent" ? "paused_agent" : "paused_organization"}`,
          agent === null ? undefined : eq(runs.agent, agent),
        ),
      )
      .all();
    if (agent !== null && waitingRuns.length === 0) return [];
    const since = toIso(createdAt);
    return [
      { kind: "runs_paused", id: `paused-${subject}-${createdAt}`, since, agent, runs: waitingRuns.length, reason },
    ];
  });
}

/** The absent workers that have something that no connected worker has: an agent of runs in the last week, or a label of active prompts. */
export function listAwayWorkers(ctx: Context, org: OrgId): Problem[] {
  const awayWorkers = ctx.awayWorkers().filter(({ awayMs }) => awayMs >= minWaitMs && awayMs < recentMs);
  // Workers are for the operator.
  if (awayWorkers.length === 0 || !hasOneOrg(ctx)) return [];
  const isRecent = gte(runs.id, firstIdOf(ctx.now() - recentMs));
  const isUsed = (agent: string): boolean =>
    ctx.db
      .select({ id: runs.id })
      .from(runs)
      .where(and(eq(runs.orgId, org), eq(runs.agent, agent), isRecent))
      .limit(1)
      .get() !== undefined;
  const requiredLabels = new Set(
    ctx.db
      .select({ labels: prompts.workerLabels })
      .from(prompts)
      .where(and(eq(prompts.orgId, org), eq(prompts.status, "active")))
      .all()
      .flatMap(({ labels }) => labels),
  );
  return awayWorkers.flatMap((worker): Problem[] => {
    const agents = worker.agents.filter(isUsed);
    const labels = worker.labels.filter((label) => requiredLabels.has(label));
    if (agents.length + labels.length === 0) return [];
    const { name, awayMs } = worker;
    const since = toIso(ctx.now() - awayMs);
    return [{ kind: "worker_away", id: `worker-${name}`, since, worker: name, agents, labels }];
  });
}
