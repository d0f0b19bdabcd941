import { and, eq, sql } from "drizzle-orm";
import { isRuleBased } from "../agents/agent.ts";
import { gates } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { minRuns } from "../stats/power.ts";
import type { PromptRow } from "./prompt-check.ts";

/** Warnings about settings that its agent ignores, and about too few runs per evaluation for a prompt with a pinned baseline or gates. */
export function createPromptWarnings(
  { db }: Pick<Deps, "db">,
  agentOf: (org: OrgId, row: PromptRow) => { agent: string },
) {
  const [org, id] = [sql.placeholder("org"), sql.placeholder("id")];
  const gate = db
    .select({ id: gates.id })
    .from(gates)
    .where(and(eq(gates.orgId, org), eq(gates.promptId, id)))
    .limit(1)
    .prepare();
  const gateOfSeveral = db
    .select({ id: gates.id })
    .from(gates)
    .where(
      and(
        eq(gates.orgId, org),
        sql`exists (select 1 from json_each(${gates.others}) where value ->> 'promptId' = ${id})`,
      ),
    )
    .limit(1)
    .prepare();

  return (row: PromptRow, runs: number): string[] => {
    const own = { org: row.orgId, id: row.id };
    if (isRuleBased(agentOf(row.orgId as OrgId, row).agent)) return ignoredByExplorer(row);
    if (runs >= minRuns) return [];
    const isCompared = row.baselineRequestId !== null || gate.get(own) || gateOfSeveral.get(own);
    if (!isCompared) return [];
    return [
      `Comparisons need at least ${minRuns} runs per evaluation, and this prompt makes ${runs}. Set runsPerEval to 5.`,
    ];
  };
}

function ignoredByExplorer({ workspace, declaredChecks }: PromptRow): string[] {
  const ignored = [
    ...(workspace ? ["workspace"] : []),
    ...(declaredChecks?.some(({ url }) => url === undefined) ? ["declaredChecks with a command or file"] : []),
  ];
  if (ignored.length === 0) return [];
  return [`The explorer has no workspace and ignores ${ignored.join(" and ")}. Use an agent with a model.`];
}
