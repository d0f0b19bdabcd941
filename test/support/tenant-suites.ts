import { eq } from "drizzle-orm";
import { type CalibrationRow, worseFigures } from "../../src/calibration/figures.ts";
import type { OrgId } from "../../src/context.ts";
import { calibrations } from "../../src/db/tables/calibrations.ts";
import { exportOrg } from "../../src/exchange/export.ts";
import { getExperimentRow } from "../../src/experiments/experiments.ts";
import { repeatDue } from "../../src/experiments/self-comparisons.ts";
import { getInbox } from "../../src/inbox/inbox.ts";
import { listFailureGroups } from "../../src/queue/failures.ts";
import { pageTextsOf, storePageText } from "../../src/reports/page-texts.ts";
import { getSpendingReport } from "../../src/spending/report.ts";
import { type Metrics, respondToScrape } from "../../src/telemetry/metrics.ts";
import { type Tenants, unlike } from "./tenants.ts";

const docsUrl = "https://docs.acme.dev/";
const page = `${docsUrl}upload`;

/** Suites, access logs, pages, counts, spending, trusts and exports of B, which must not depend on A's. Each step returns what is wrong, if anything. */
export function suiteBorders(world: Tenants): Record<string, () => Promise<string | undefined>> {
  const { service, db, a, b } = world;
  const { ctx } = service;
  const [asA, asB] = [world.as(a), world.as(b)];
  const both = [asA, asB];
  const firstOf = async (own: typeof asA, path: string) => (await own.send("GET", `/api/v1/${path}`)).body[0];
  const run = (sql: string, ...values: (string | number)[]) => db.$client.run(sql, values);

  return {
    async "A has more versions of a suite than B"() {
      const slots = [{ slot: "upload", title: "Upload", text: "Upload a file.", endGoal: null, declaredChecks: [] }];
      const create = async (own: typeof asA, version: number) => {
        const body = { id: "storage", version, title: `Of ${own.a.org}`, limits: null, agents: null, slots };
        return (await own.send("POST", "/api/v1/suites", { body })).status;
      };
      const statuses = [await create(asA, 1), await create(asA, 2), await create(asB, 1)];
      const listed = [];
      for (const own of both)
        listed.push((await own.send("GET", "/api/v1/suites")).body.map(({ version }: { version: number }) => version));
      const compared = [];
      for (const own of both) compared.push((await own.send("GET", "/api/v1/suites/storage/comparison")).body.version);
      return (
        unlike("created", statuses, [201, 201, 201]) ??
        unlike("listed versions", listed, [
          [1, 2],
          [1, 1],
        ]) ??
        unlike("compared versions", compared, [2, 1])
      );
    },

    async "A changes a prompt of the suite that B runs"() {
      const values = { product: "Acme", primaryTask: "store a note", versionCommand: "acme --version" };
      const created = [];
      for (const own of both) {
        const { id: providerId } = await firstOf(own, "providers");
        created.push(
          (await own.send("POST", "/api/v1/suites/baseline/prompts", { body: { providerId, values } })).body,
        );
      }
      const [{ prompts }] = created;
      await asA.send("PATCH", `/api/v1/prompts/${prompts[0].promptId}`, { body: { text: "Another text." } });
      const changed = [];
      for (const own of both)
        changed.push((await own.send("GET", "/api/v1/suites/baseline/comparison")).body.changed.length);
      const started = await asB.send("POST", "/api/v1/suites/baseline/run", { body: {} });
      run("update jobs set state = 'done', completed_at = ? where state = 'queued'", ctx.now());
      return (
        unlike("changed prompts", changed, [1, 0]) ?? unlike("runs of B", [started.status, started.body.runs], [202, 5])
      );
    },

    async "B asks for an experiment of A"() {
      const { id } = await firstOf(asA, "experiments");
      const listed = await asB.send("GET", "/api/v1/experiments");
      const statuses = [];
      for (const [method, path] of [
        ["GET", ""],
        ["POST", "/cancel"],
      ] as const)
        statuses.push((await asB.send(method, `/api/v1/experiments/${id}${path}`)).status);
      return (
        unlike("experiments", [listed.body.length, listed.headers.get("x-total-count")], [1, "1"]) ??
        unlike("statuses", statuses, [404, 404])
      );
    },

    async "B asks for a bisect of A"() {
      const id = ctx.db.$client.query("select id from bisects where org_id = ?").values(asA.a.org)[0]?.[0];
      const statuses = [];
      for (const [method, path] of [
        ["GET", ""],
        ["POST", "/cancel"],
      ] as const)
        statuses.push((await asB.send(method, `/api/v1/bisects/${id}${path}`)).status);
      return unlike("statuses", statuses, [404, 404]);
    },

    async "A and B calibrate the same agent"() {
      const { id } = await firstOf(asB, "calibrations");
      const figures = (n: number) => ({
        ...{ found: { n, of: 100 }, falseFindings: null, falseAlarms: { n: 0, of: 0 }, failedRuns: 0 },
        ...{ missed: [], invented: [], differing: [] },
      });
      run("update calibrations set figures = ? where org_id = ?", JSON.stringify(figures(100)), a.org);
      const rowOfB = () => db.select().from(calibrations).where(eq(calibrations.id, id)).get() as CalibrationRow;
      const row = rowOfB();
      const wrong = unlike("worse than A", worseFigures(ctx, row, row.model, figures(50)), []);
      if (wrong) return wrong;
      run("update calibrations set next_at = 1 where org_id = ?", b.org);
      const body = { agent: "explorer", sites: 1, budgetUsd: 100, everyDays: 1 };
      const { status } = await asA.send("POST", "/api/v1/calibrations", { body });
      const { nextAt } = rowOfB();
      run("update calibrations set next_at = null");
      return unlike("calibration of A, and the next one of B", [status, nextAt], [201, 1]);
    },

    async "A and B repeat a comparison with itself"() {
      const { promptIds } = getExperimentRow(ctx, b.org, (await firstOf(asB, "experiments")).id);
      const arms = [{ name: "baseline" }, { name: "baseline again" }];
      const body = { promptIds, arms, templateArgs: { thing: "file" }, repeats: 2, everyWeeks: 1 };
      const { body: requested } = await asB.send("POST", "/api/v1/experiments", { body });
      run("update experiments set status = 'completed', completed_at = 1, created_at = 1 where id = ?", requested.id);
      await repeatDue(ctx);
      const listed = await asB.send("GET", "/api/v1/experiments");
      run("update experiments set every_weeks = null");
      return unlike("experiments of B", listed.body.length, 3);
    },

    async "the docs of A have changed"() {
      const basis = { url: page, line: 1, quote: "Upload it.", digest: "0" };
      const change = { runId: "1", at: 1 };
      const values = [JSON.stringify(basis), JSON.stringify(change)] as const;
      run("update prompts set basis = ?, basis_change = ? where org_id = ? and status = 'active'", ...values, a.org);
      const kindsOf = (own: typeof a) => getInbox(ctx, own.org).problems.map(({ kind }) => kind);
      const shown = [a, b].map((own) => kindsOf(own).includes("basis_changed"));
      run("update prompts set basis = null, basis_change = null");
      return unlike("changed docs", shown, [true, false]);
    },

    async "A and B have access logs of the same docs"() {
      const readsOf = async (own: typeof asA) => {
        const { id } = await firstOf(own, "providers");
        const { body } = await own.send("GET", `/api/v1/providers/${id}/field-traffic`);
        return body.pages.map(({ coding }: { coding: number }) => coding);
      };
      const month = new Date(ctx.now()).toISOString().slice(0, 7);
      const counts = { month, kind: "coding", name: "Codex", markdown: 0, missing: 0 };
      for (const [own, reads] of [
        [asA, 3],
        [asB, 5],
      ] as const) {
        const body = { log: "0".repeat(64), pages: [{ url: page, reads, ...counts }] };
        const { status } = await own.send("POST", "/api/v1/field-traffic", { body });
        if (status !== 201) return `the log of ${own.a.org} is refused: ${status}`;
      }
      return unlike("reads", [await readsOf(asA), await readsOf(asB)], [[3], [5]]);
    },

    async "A and B read the same version of a page"() {
      const text = "# Upload\n\nUpload it.";
      const read = [];
      for (const own of both) {
        const { runId } = await firstOf(own, "runs?limit=1");
        const session = { orgId: own.a.org, runId, attempt: 1 };
        storePageText(db, session, 1_000, text);
        read.push(pageTextsOf(db, session).get(1_000));
      }
      return unlike("texts", read, [text, text]);
    },

    async "A and B count the reports of which they list one"() {
      for (const own of both) {
        const list = (limit: number) => own.send("GET", `/api/v1/reports?limit=${limit}`);
        const total = (await list(1)).headers.get("x-total-count");
        const wrong = unlike(`reports of ${own.a.org}`, total, `${(await list(100)).body.length}`);
        if (wrong) return wrong;
      }
    },

    async "the metrics count the spending of each organization once"() {
      const metrics = service.telemetry.metrics as Metrics;
      const text = await (await respondToScrape(metrics, new Request("http://localhost/metrics"))).text();
      const shown = Number(/^evald_model_spend_usd_total (\S+)$/m.exec(text)?.[1]);
      const stored = db.$client.query<{ usd: number }, []>("select sum(usd) usd from spending").get()?.usd ?? 0;
      return Math.abs(shown - stored) < 1e-6 ? undefined : `spending: ${shown} in place of ${stored}`;
    },

    async "A spends more, and plans more"() {
      const spendingOf = (org: OrgId) => JSON.stringify(getSpendingReport(ctx, org));
      const before = { a: spendingOf(a.org), b: spendingOf(b.org) };
      run("update runs set spent_usd = 3 where org_id = ? and status = 'failed'", a.org);
      run('update spending set usd = usd + 7, "from" = "from" - 900000 where org_id = ?', a.org);
      run("update spending_details set usd = usd + 7 where org_id = ?", a.org);
      await asA.send("POST", "/api/v1/prompts", { body: { text: `Read ${docsUrl}`, frequency: "hourly" } });
      if (spendingOf(a.org) === before.a) return "the spending of A has not changed";
      return unlike("spending of B", spendingOf(b.org), before.b);
    },

    async "an operator sees each failure once, with its organization"() {
      run("begin");
      run("update deliveries set status = 'failed', failure = 'timeout', completed_at = ?", ctx.now());
      const groups = listFailureGroups(ctx);
      const failed = (kind: string) =>
        groups.filter((group) => group.kind === kind).reduce((sum, group) => sum + group.failed, 0);
      const stored = (sql: string) => db.$client.query<{ n: number }, []>(`select count(*) n from ${sql}`).get()?.n;
      const wrong =
        unlike("runs", failed("run"), stored("runs where status = 'failed' and failure_cause <> 'cancelled'")) ??
        unlike("deliveries", failed("delivery"), stored("deliveries"));
      run("rollback");
      return wrong;
    },

    async "A has a trust, trends and a prompt that B asks for"() {
      const trust = await firstOf(asA, "oidc/trusts");
      const prompt = await firstOf(asA, "prompts");
      const listed = await asB.send("GET", "/api/v1/oidc/trusts");
      const statuses = [];
      for (const [method, path] of [
        ["DELETE", `oidc/trusts/${trust.id}`],
        ["GET", `trends?promptId=${prompt.id}`],
        ["GET", `export?promptId=${prompt.id}`],
      ] as const)
        statuses.push((await asB.send(method, `/api/v1/${path}`)).status);
      return (
        unlike("trusts", [listed.body.length, listed.headers.get("x-total-count")], [1, "1"]) ??
        unlike("statuses", statuses, [404, 404, 404])
      );
    },

    async "B exports what it has"() {
      const lines = [...exportOrg(ctx, b.org, {})].join("").split("\n");
      const { runId } = await firstOf(asA, "runs?limit=1");
      const [first = ""] = lines;
      const name = db.$client.query<{ name: string }, [string]>("select name from orgs where id = ?").get(b.org)?.name;
      if (lines.some((line) => line.includes(runId) || line.includes(a.org))) return "the export of B has rows of A";
      return unlike("organization", JSON.parse(first).organization, name);
    },
  };
}
