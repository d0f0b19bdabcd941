import { type Static, Type } from "@sinclair/typebox";
import { and, count, desc, eq } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import type { Commit } from "../db/commit.ts";
import type { Tx } from "../db/open.ts";
import { fixes, frictionLifecycles, frictionPoints, recommendations } from "../db/tables/friction.ts";
import { reports } from "../db/tables/reports.ts";
import { runs, type Trigger } from "../db/tables/runs.ts";
import { conflict, notFound } from "../errors.ts";
import type { Page, Paged } from "../http/paging.ts";
import type { Prompts } from "../prompts/prompts.ts";
import { MappedUrl, mapOf, maxMappedHosts, Nullable, OneOf } from "../schema.ts";
import { type Fix, fixStatuses } from "./fix-schema.ts";
import { createFixes } from "./fixes.ts";

export const DoneInput = Type.Object(
  {
    promptId: Type.String({ format: "uuid", description: "Prompt whose reports recommend it" }),
    note: Type.Optional(Nullable(Type.String({ maxLength: 2000, description: "What was changed" }))),
    runs: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 50,
        description: "Minimum number of verification runs; never fewer than before or than runsPerEval",
      }),
    ),
    urlMap: Type.Optional(
      mapOf(MappedUrl, {
        maxProperties: maxMappedHosts,
        description: "URL map of the verification runs; default: that of the run that hit it last",
      }),
    ),
  },
  {
    title: "DoneInput",
    examples: [
      { promptId: "0199f3a1-5d7c-7b1e-9c55-3f6a2f0d8e11", note: "The link points to /reference/clients now." },
    ],
  },
);
type DoneInput = Static<typeof DoneInput>;

export const fixFilter = {
  promptId: Type.String({ format: "uuid" }),
  status: Type.Optional(OneOf(fixStatuses)),
};

type Asked = {
  urlMap: Record<string, string>;
  templateArgs?: Record<string, string>;
  runs: number;
  trigger: Trigger;
};

type Parts = {
  prompts: Pick<Prompts, "getPromptRow">;
  commit: Commit;
  /** Accepts an evaluation as part of a transaction. */
  accept: (tx: Tx, org: OrgId, promptId: string, input: Asked) => { evalRequestId: string };
};

export type Recommendations = ReturnType<typeof createRecommendations>;

/** Recommended fixes that people track: marked done, evaluated again, and verified. */
export function createRecommendations({ db, now, newId, signals }: Context, { prompts, commit, accept }: Parts) {
  const ofFixes = createFixes({ db });

  /** The newest published report with a friction point, live docs first. */
  function findLast(org: OrgId, promptId: string, fingerprint: string) {
    const rows = db
      .select({ place: frictionLifecycles.place, report: reports, run: runs })
      .from(frictionLifecycles)
      .innerJoin(reports, eq(reports.id, frictionLifecycles.reportId))
      .innerJoin(runs, eq(runs.id, reports.runId))
      .where(
        and(
          eq(frictionLifecycles.orgId, org),
          eq(frictionLifecycles.promptId, promptId),
          eq(frictionLifecycles.fingerprint, fingerprint),
        ),
      )
      .orderBy(desc(frictionLifecycles.lastSeenAt))
      .all();
    return rows.find(({ place }) => place === "") ?? rows[0] ?? null;
  }

  /** Throws not_found. */
  function lastOf(org: OrgId, promptId: string, fingerprint: string) {
    const last = findLast(org, promptId, fingerprint);
    if (!last)
      throw notFound(
        `No published report of prompt ${promptId} has a friction point with the fingerprint ${fingerprint}.`,
      );
    return last;
  }

  /** The recommended fix for a friction point in a report, and all friction points that it should remove. */
  function adviceOf(reportId: string, fingerprint: string): { title: string; fingerprints: string[] } {
    const points = db.select().from(frictionPoints).where(eq(frictionPoints.reportId, reportId)).all();
    const own = points.find((point) => point.fingerprint === fingerprint);
    const advice = db.select().from(recommendations).where(eq(recommendations.reportId, reportId)).all();
    const found = advice.find(({ frictionIds }) => own && frictionIds.includes(own.id));
    if (!found) return { title: own?.title ?? fingerprint, fingerprints: [fingerprint] };
    const fingerprints = points.filter(({ id }) => found.frictionIds.includes(id)).map((point) => point.fingerprint);
    return { title: found.title, fingerprints };
  }

  /** As many runs as the evaluation before had, and at least the prompt's `runsPerEval`. */
  const runsToVerify = (org: OrgId, evalRequestId: string, runsPerEval: number | null): number =>
    Math.max(
      db
        .select({ n: count() })
        .from(runs)
        .where(and(eq(runs.orgId, org), eq(runs.evalRequestId, evalRequestId)))
        .get()?.n ?? 0,
      runsPerEval ?? 1,
    );

  return {
    /** The number of runs that `markDone` requests by default; null if no published report has the friction point. */
    forecastRuns(org: OrgId, promptId: string, fingerprint: string): number | null {
      const last = findLast(org, promptId, fingerprint);
      const { runsPerEval } = prompts.getPromptRow(org, promptId);
      return last && runsToVerify(org, last.run.evalRequestId, runsPerEval);
    },

    /**
     * Marks a recommended fix as done, by the fingerprint of one of its friction points, and requests as many runs as
     * the last evaluation had, to verify it. Throws not_found, conflict while it is being verified, and what requesting
     * an evaluation throws.
     */
    async markDone(
      org: OrgId,
      fingerprint: string,
      input: DoneInput,
      who: { by: string; trigger: Trigger },
    ): Promise<Fix> {
      const prompt = prompts.getPromptRow(org, input.promptId);
      const { report, run } = lastOf(org, prompt.id, fingerprint);
      const { title, fingerprints } = adviceOf(report.id, fingerprint);
      const createdAt = now();
      const fix = await commit((tx) => {
        const open = ofFixes
          .rowsOf(org, prompt.id)
          .filter((row) => row.fingerprints.some((each) => fingerprints.includes(each)))
          .map(ofFixes.toFix)
          .find(({ status }) => status === "running");
        if (open)
          throw conflict(
            `it was marked done at ${open.createdAt}, and the runs of ${open.after.evalRequestId} are still in progress`,
          );
        const { evalRequestId } = accept(tx, org, prompt.id, {
          urlMap: input.urlMap ?? run.urlMap,
          templateArgs: run.templateArgs ?? undefined,
          runs: Math.max(runsToVerify(org, run.evalRequestId, prompt.runsPerEval), input.runs ?? 1),
          trigger: who.trigger,
        });
        const row = {
          id: newId(createdAt),
          orgId: org,
          promptId: prompt.id,
          title,
          fingerprints,
          doneBy: who.by,
          note: input.note ?? null,
          createdAt,
          beforeId: run.evalRequestId,
          afterId: evalRequestId,
        };
        tx.insert(fixes).values(row).run();
        return row;
      });
      signals.jobQueued.emit();
      return ofFixes.toFix(fix);
    },

    /** Recommended fixes of a prompt that were marked done, newest first. Throws not_found. */
    listDone(
      org: OrgId,
      { promptId, status }: { promptId: string; status?: Fix["status"] },
      { limit, offset }: Page,
    ): Paged<Fix> {
      const rows = ofFixes.rowsOf(org, prompts.getPromptRow(org, promptId).id);
      if (status === undefined)
        return { items: rows.slice(offset, offset + limit).map(ofFixes.toFix), total: rows.length };
      const wanted = rows.map(ofFixes.toFix).filter((fix) => fix.status === status);
      return { items: wanted.slice(offset, offset + limit), total: wanted.length };
    },
  };
}
