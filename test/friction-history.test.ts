import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eq } from "drizzle-orm";
import fc from "fast-check";
import { transaction } from "../src/db/open.ts";
import { type ReportStatus, reports } from "../src/db/tables/reports.ts";
import { runs } from "../src/db/tables/runs.ts";
import { importFile } from "../src/exchange/import.ts";
import type { Grade } from "../src/grading/grade.ts";
import { createPrompt } from "../src/prompts/prompts.ts";
import { setReportStatus } from "../src/reports/reports.ts";
import { showGrading } from "../src/reports/shown-grading.ts";
import { acceptEval } from "../src/runs/requests.ts";
import type { History } from "../src/stats/lifecycle.ts";
import { noisy, testApp } from "./support/app.ts";
import { endRun, niceGrade } from "./support/reports.ts";
import { isThorough } from "./support/thorough.ts";

type App = ReturnType<typeof testApp>;

const [point] = niceGrade.frictions as [Grade["frictions"][number]];
const [page = ""] = point.preconditions;
const points = Array.from({ length: 2 }, (_, i) => ({ ...point, fingerprint: String(i).repeat(16) }));
const graded = (frictions: Grade["frictions"], exposure: Partial<Grade["exposure"]> = {}): Grade => ({
  ...niceGrade,
  frictions,
  recommendations: [],
  exposure: { ...niceGrade.exposure, ...exposure },
});
const [one, two] = points as [Grade["frictions"][number], Grade["frictions"][number]];
const lost = { lostPoints: 0.1, lostSeconds: 0.7, lostUsd: 0.2 };
/** Sessions that met something, passed it, or never got there. */
const grades = [
  graded([]),
  graded([one]),
  graded([one, two]),
  graded([{ ...one, ...lost }, two]),
  graded([{ ...two, severity: "low" }], { byRules: false }),
  graded([{ ...one, preconditions: [page, "run"] }]),
  graded([], { visits: [], done: [] }),
  graded([], { byRules: false }),
] as const;

const evaluations = 60;
const anyRun = fc.nat(evaluations - 1);
const anyGrade = fc.nat(grades.length - 1);
/** The order in which runs end, the grade of each, and what happens to reports in between. */
const orders = fc.record({
  ends: fc.shuffledSubarray(
    Array.from({ length: evaluations }, (_, i) => i),
    { minLength: 50 },
  ),
  grades: fc.array(anyGrade, { minLength: evaluations, maxLength: evaluations }),
  changes: fc.array(
    fc.record({ at: anyRun, do: fc.constantFrom("archived", "published", "regraded"), run: anyRun, grade: anyGrade }),
    {
      maxLength: 15,
    },
  ),
});
type Order = typeof orders extends fc.Arbitrary<infer T> ? T : never;

/** Ends the runs of a prompt in this order, and archives, publishes and regrades their reports. */
function play(app: App, order: Order): void {
  const { service, a, db } = app;
  const prompt = createPrompt(service.ctx, a.org, { text: "Upload. https://docs.example.com" });
  const accept = (i: number) =>
    transaction(db, (tx) =>
      acceptEval(service.ctx, tx, a.org, prompt.id, {
        urlMap: {},
        trigger: "api",
        agent: i % 4 === 0 ? "noisy" : "explorer",
      }),
    );
  const runIds = Array.from({ length: evaluations }, (_, i) => accept(i).runIds[0] ?? "");
  for (const [position, i] of order.ends.entries()) {
    const run = db
      .select()
      .from(runs)
      .where(eq(runs.id, runIds[i] ?? ""))
      .get();
    if (run) endRun(app, run, grades[order.grades[i] ?? 0] as Grade);
    for (const change of order.changes.filter(({ at }) => at === position)) {
      const report = db
        .select()
        .from(reports)
        .where(eq(reports.runId, runIds[change.run] ?? ""))
        .get();
      if (!report) continue;
      if (change.do === "regraded") regrade(app, report, grades[change.grade] as Grade);
      else setReportStatus(service.ctx, a.org, report.slug, change.do as ReportStatus);
    }
  }
}

function regrade({ service, db }: App, report: typeof reports.$inferSelect, grade: Grade): void {
  const frictions = grade.frictions.map((each) => ({ ...each, id: crypto.randomUUID() }));
  const grading = { id: report.gradingId, grade: { ...grade, frictions, recommendations: [] } };
  transaction(db, (tx) => showGrading(service.ctx, tx, report, grading as never, grade.exposure));
}

type Row = { life: string; place: string };

const lifecycles = ({ db }: App) =>
  db.$client
    .query<Row, []>("select * from friction_lifecycles order by place, fingerprint")
    .all()
    .map(({ org_id: _, ...row }: Row & { org_id?: string }) => ({ ...row, life: JSON.parse(row.life) as History }));

test("the history of friction is the same, whatever the order in which reports arrived", async () => {
  const folder = mkdtempSync(join(tmpdir(), "evald-history-"));
  const file = join(folder, "export.jsonl");
  let folded = 0;
  await fc.assert(
    fc.asyncProperty(orders, async (order) => {
      const [app, other] = [testApp({ agents: noisy }), testApp({ agents: noisy })];
      play(app, order);
      writeFileSync(file, (await app.send("GET", "/api/v1/export")).body);
      importFile(other.service.ctx, other.a.org, file);
      const histories = lifecycles(app);
      expect(lifecycles(other)).toEqual(histories);
      folded += histories.filter(({ life }) => life.beforeId !== "").length;
    }),
    { numRuns: isThorough ? 60 : 2, seed: 7 },
  );
  // Some histories are longer than what is kept of each evaluation.
  expect(folded).toBeGreaterThan(0);
  rmSync(folder, { recursive: true });
}, 300_000);
