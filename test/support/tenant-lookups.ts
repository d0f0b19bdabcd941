import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eq } from "drizzle-orm";
import { createOrg, updateOrg } from "../../src/auth/orgs.ts";
import { destinations } from "../../src/db/tables/notifications.ts";
import { artifacts, runs } from "../../src/db/tables/runs.ts";
import { exportOrg } from "../../src/exchange/export.ts";
import { importFile } from "../../src/exchange/import.ts";
import { getInbox } from "../../src/inbox/inbox.ts";
import { readPromptId } from "../../src/prompts/names.ts";
import { limitsWithinBudget } from "../../src/runs/budgets.ts";
import { getSpending } from "../../src/runs/spending.ts";
import { getSpendingReport } from "../../src/spending/report.ts";
import { type Tenants, unlike } from "./tenants.ts";

/** Lookups of B that must not find what A has. Each returns what is wrong, if anything. */
export function lookupBorders(world: Tenants): Record<string, () => Promise<string | undefined>> {
  const { service, db, a, b } = world;
  const { ctx } = service;
  const [asA, asB] = [world.as(a), world.as(b)];
  const run = (sql: string, ...values: (string | number | Uint8Array)[]) => db.$client.run(sql, values);

  return {
    async "B names prompts by titles that only A has"() {
      const create = async (body: object) => (await asA.send("POST", "/api/v1/prompts", { body })).body.id;
      await create({ title: "Only A has it", text: "Read https://docs.acme.dev/" });
      await create({ text: "Only A has this task. Read https://docs.acme.dev/" });
      for (const title of ["Only A has it", "Only A has this task"]) {
        if (readPromptId(ctx, a.org, title) === title) return `A does not find ${title}`;
        const problem = unlike(title, readPromptId(ctx, b.org, title), title);
        if (problem !== undefined) return problem;
      }
    },

    async "B regrades the reports of a prompt of A"() {
      const [theirs] = (await asA.send("GET", "/api/v1/prompts")).body;
      const body = { since: "2020-01-01", promptId: theirs.id };
      return unlike("regrade", (await asB.send("POST", "/api/v1/regrades", { body })).status, 404);
    },

    async "a coding agent of A has left its output"() {
      const [first] = db.select().from(runs).where(eq(runs.orgId, a.org)).limit(1).all();
      const runId = first?.id ?? "";
      const artifact = { orgId: a.org, runId, attempt: 1, name: "agent-output-0.jsonl", data: Buffer.from("{}\n") };
      db.insert(artifacts).values(artifact).run();
      const path = `/api/v1/runs/${runId}/output?attempt=1`;
      const own = (await asA.send("GET", path)).status;
      return unlike("output for A", own, 200) ?? unlike("output for B", (await asB.send("GET", path)).status, 404);
    },

    async "only A has limits of spending"() {
      updateOrg(ctx, b.org, { maxUsdAMonth: null, maxUsdARun: null });
      updateOrg(ctx, a.org, { maxUsdAMonth: 10, maxUsdARun: 0.25 });
      const { monthlyBudgetUsd } = getSpending(ctx, b.org) as { monthlyBudgetUsd?: number | null };
      if (monthlyBudgetUsd) return `B has the budget ${monthlyBudgetUsd}`;
      updateOrg(ctx, b.org, { maxUsdAMonth: 1000 });
      const atOnce = () => limitsWithinBudget(ctx, b.org, { atOnce: null, aDay: null }).atOnce;
      const before = atOnce();
      updateOrg(ctx, a.org, { maxUsdAMonth: 20, maxUsdARun: 0.01 });
      const after = atOnce();
      updateOrg(ctx, b.org, { maxUsdAMonth: null });
      return unlike("runs of B within its budget", after, before);
    },

    async "A has paid for runs that failed"() {
      const failed = () => getSpendingReport(ctx, b.org).failedRuns.runs;
      const before = failed();
      run("update runs set spent_usd = 5 where org_id = ? and status = 'failed'", a.org);
      if (getSpendingReport(ctx, a.org).failedRuns.runs === 0) return "A has no failed runs";
      return unlike("failed runs of B", failed(), before);
    },

    async "the secrets of a destination of A can't be decrypted"() {
      const [of] = db.select().from(destinations).all();
      if (!of) return "there is no destination";
      const before = JSON.stringify(getInbox(ctx, b.org).problems.find(({ id }) => id === "secrets"));
      run("update destinations set sealed = zeroblob(40) where org_id = ?", a.org);
      return unlike(
        "line of B",
        JSON.stringify(getInbox(ctx, b.org).problems.find(({ id }) => id === "secrets")),
        before,
      );
    },

    async "B imports its settings"() {
      updateOrg(ctx, b.org, { timeZone: "Asia/Tokyo" });
      const folder = mkdtempSync(join(tmpdir(), "evald-test-"));
      try {
        const [head = "", ...rest] = [...exportOrg(ctx, createOrg(ctx, "Source of settings").id, {})]
          .join("")
          .trimEnd()
          .split("\n");
        const settings = [...exportOrg(ctx, b.org, {})]
          .join("")
          .split("\n")
          .find((line) => line.startsWith('{"type":"organization"'));
        const lines = rest
          .slice(0, -1)
          .map((line) => (line.startsWith('{"type":"organization"') ? (settings ?? line) : line));
        const sha256 = new Bun.CryptoHasher("sha256").update(`${lines.join("\n")}\n`).digest("hex");
        const file = join(folder, "export.jsonl");
        writeFileSync(
          file,
          `${[head, ...lines, JSON.stringify({ type: "end", rows: lines.length, sha256 })].join("\n")}\n`,
        );
        const zoneOfA = () =>
          db.$client.query<{ zone: string }, [string]>("select time_zone zone from orgs where id = ?").get(a.org)?.zone;
        const before = zoneOfA();
        importFile(ctx, createOrg(ctx, "Target of settings").id, file);
        return unlike("time zone of A", zoneOfA(), before);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  };
}
