import { and, eq, inArray } from "drizzle-orm";
import { listKeys } from "../auth/keys.ts";
import { isNamedIn } from "../auth/person.ts";
import type { Context, OrgId } from "../context.ts";
import { trusts } from "../db/tables/keys.ts";
import { people } from "../db/tables/people.ts";
import { prompts } from "../db/tables/prompts.ts";
import { titleText } from "../prompts/lists.ts";
import { titleOf } from "../reports/labels.ts";
import type { Month } from "../runs/spending.ts";
import { round } from "../stats/repeats.ts";
import { type Amount, type Detail, readDetails, readQuarterHours, readRest } from "./details.ts";
import type { BreakdownName, SpendingReport, SpendingRow } from "./schema.ts";

/** Maximum rows of a breakdown. All other rows are combined into one. */
const maxRows = 100;

type Row = Omit<SpendingRow, "name">;

/** Adds up amounts by key, for this month and the previous one. The most expensive key comes first. */
function rowsBy<T extends Amount>(current: T[], previous: T[], keyOf: (detail: T) => string): Row[] {
  const rows = new Map<string, Row>();
  const rowOf = (key: string) => {
    const row = rows.get(key) ?? { key, spentUsd: 0, estimatedUsd: 0, previousUsd: 0 };
    rows.set(key, row);
    return row;
  };
  for (const detail of current) {
    const row = rowOf(keyOf(detail));
    row.spentUsd += detail.usd;
    row.estimatedUsd += detail.estimatedUsd;
  }
  for (const detail of previous) rowOf(keyOf(detail)).previousUsd += detail.usd;
  const sorted = [...rows.values()].sort((a, b) => b.spentUsd - a.spentUsd || b.previousUsd - a.previousUsd);
  const others = sorted.splice(maxRows);
  if (others.length > 0) sorted.push(toOther(others));
  return sorted.map(toRounded);
}

/** The sums of rows as one row. */
const toOther = (rows: Row[]): Row => ({
  key: "other",
  spentUsd: rows.reduce((sum, { spentUsd }) => sum + spentUsd, 0),
  estimatedUsd: rows.reduce((sum, { estimatedUsd }) => sum + estimatedUsd, 0),
  previousUsd: rows.reduce((sum, { previousUsd }) => sum + previousUsd, 0),
});

/** A smaller rest, in USD, is a rounding error. */
const minRestUsd = 1e-7;

/**
 * Adds the rest of a month to the row Other. The rest is spending without details: calls of models that proposed prompts. It is added to every
 * breakdown except that by day, which contains it already, so that all of them have the same sum.
 */
function withRest(rows: Row[], rest: Amount, previous: Amount): Row[] {
  if (rest.usd < minRestUsd && previous.usd < minRestUsd) return rows;
  const ofNoPrompt = {
    key: "other",
    spentUsd: Math.max(0, rest.usd),
    estimatedUsd: Math.max(0, rest.estimatedUsd),
    previousUsd: Math.max(0, previous.usd),
  };
  const others = rows.filter(({ key }) => key === "other");
  return [...rows.filter(({ key }) => key !== "other"), toRounded(toOther([ofNoPrompt, ...others]))];
}

const toRounded = <T extends Row>(row: T): T => ({
  ...row,
  spentUsd: round(row.spentUsd, 6),
  estimatedUsd: round(row.estimatedUsd, 6),
  previousUsd: round(row.previousUsd, 6),
});

const withNames = (rows: Row[], nameOf: (key: string) => string | undefined): SpendingRow[] =>
  rows.map(({ key, ...row }) => ({ key, name: key === "other" ? "Other" : (nameOf(key) ?? key), ...row }));

const purposeNames = { agent: "Agents", judge: "Judges" };
const triggerNames: Record<string, string> = {
  manual: "Manual",
  schedule: "Schedule",
  ci: "CI",
  api: "API",
  regrade: "Regrade",
};
const noRequesterNames: Record<string, string> = { schedule: "Schedules", regrade: "Regrades", operator: "Operator" };

/** The triggers that are combined with others in one row. */
const triggerKeys: Partial<Record<Detail["trigger"], string>> = { web: "manual", cli: "manual", mcp: "api" };
const triggerKeyOf = ({ trigger }: Detail): string => triggerKeys[trigger] ?? trigger;

function requesterKeyOf({ trigger, personId, keyId }: Detail): string {
  if (personId) return `person:${personId}`;
  if (keyId) return `key:${keyId}`;
  return trigger === "schedule" || trigger === "regrade" ? trigger : "operator";
}

/** What a month cost, broken down by purpose, compared with the previous month. */
export function getBreakdown(
  ctx: Context,
  org: OrgId,
  month: Month,
  previousMonth: Month,
  timeZone: string,
): SpendingReport["breakdown"] {
  const [current, previous] = [readDetails(ctx, org, month), readDetails(ctx, org, previousMonth)];
  const rest = readRest(ctx, org, month, current);
  const previousRest = readRest(ctx, org, previousMonth, previous);
  const by = (keyOf: (detail: Detail) => string) => withRest(rowsBy(current, previous, keyOf), rest, previousRest);
  const byField = (field: "promptId" | "agent" | "model" | "purpose") => by((detail) => detail[field]);
  const byPrompt = byField("promptId");
  const promptIds = byPrompt.map(({ key }) => key);
  const titles = titlesOf(ctx, org, promptIds);
  const requesters = requesterNamesOf(ctx, org);
  return {
    prompt: withNames(byPrompt, (key) => titles.get(key)),
    agent: withNames(byField("agent"), String),
    model: withNames(byField("model"), String),
    purpose: withNames(byField("purpose"), (key) => purposeNames[key as Detail["purpose"]]),
    requester: withNames(by(requesterKeyOf), requesters),
    trigger: withNames(by(triggerKeyOf), (key) => triggerNames[key]),
    day: daysOf(ctx, org, month, previousMonth, timeZone),
  } satisfies Record<BreakdownName, SpendingRow[]>;
}

/** The days of a month on which this month or the previous one has a cost. */
function daysOf(ctx: Context, org: OrgId, month: Month, previousMonth: Month, timeZone: string): SpendingRow[] {
  // In Canada, dates are written as `2026-11-21`.
  const format = new Intl.DateTimeFormat("en-CA", { timeZone, year: "numeric", month: "2-digit", day: "2-digit" });
  const dateOf = (at: number) => format.format(at);
  const dayOfMonth = ({ from }: { from: number }) => dateOf(from).slice(8);
  const rows = rowsBy(readQuarterHours(ctx, org, month), readQuarterHours(ctx, org, previousMonth), dayOfMonth);
  const monthText = dateOf(month.from).slice(0, 8);
  return rows
    .map(({ key, ...row }) => ({ key: monthText + key, name: monthText + key, ...row }))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
}

function titlesOf({ db }: Context, org: OrgId, ids: string[]): Map<string, string> {
  const rows = db
    .select({ id: prompts.id, title: prompts.title, text: titleText })
    .from(prompts)
    .where(and(eq(prompts.orgId, org), inArray(prompts.id, ids)))
    .all();
  return new Map(rows.map(({ id, ...prompt }) => [id, titleOf(prompt)]));
}

/** The name of a requester by its key. */
function requesterNamesOf(ctx: Context, org: OrgId): (key: string) => string {
  const keys = new Map(listKeys(ctx, org).map(({ id, name }) => [id, name]));
  const repositories = ctx.db
    .select({ id: trusts.id, repository: trusts.repository })
    .from(trusts)
    .where(eq(trusts.orgId, org))
    .all();
  const trustNames = new Map(repositories.map(({ id, repository }) => [id, repository]));
  return (key) => {
    const [kind = "", id = ""] = key.split(":");
    if (kind === "person") {
      const where = and(eq(people.id, id), isNamedIn(org, id));
      return ctx.db.select({ name: people.name }).from(people).where(where).get()?.name ?? "Former member";
    }
    if (kind !== "key") return noRequesterNames[kind] ?? kind;
    const repository = trustNames.get(id);
    return repository === undefined ? `API key ${keys.get(id) ?? "that was deleted"}` : `CI of ${repository}`;
  };
}
