import { and, desc, eq, inArray, isNotNull, ne } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { experiments } from "../db/tables/experiments.ts";
import { prompts } from "../db/tables/prompts.ts";
import { titleText } from "../prompts/lists.ts";
import { titleOf } from "../reports/labels.ts";
import { toIso } from "../schema.ts";
import type { Problem } from "./problems.ts";

/** The newest comparisons of prompts with themselves that found a difference although nothing had changed. */
export function listDriftedComparisons({ db }: Context, org: OrgId): Problem[] {
  const rows = db
    .select()
    .from(experiments)
    .where(and(eq(experiments.orgId, org), isNotNull(experiments.drift)))
    .orderBy(desc(experiments.id))
    .all();
  return rows.flatMap(({ id, promptIds, drift, createdAt, completedAt }): Problem[] => {
    const row = db
      .select({ id: prompts.id, title: prompts.title, text: titleText })
      .from(prompts)
      .where(and(eq(prompts.orgId, org), inArray(prompts.id, promptIds), ne(prompts.status, "archived")))
      .get();
    if (!row || drift === null) return [];
    const prompt = { id: row.id, title: titleOf(row) };
    const since = toIso(completedAt ?? createdAt);
    return [{ kind: "false_alarms", id: `alarms-${id}`, since, prompt, drift, experimentId: id }];
  });
}
