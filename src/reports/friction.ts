import { and, asc, desc, eq, gt, sql } from "drizzle-orm";
import { frictionLives, frictionPoints, reports } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { notFound } from "../errors.ts";
import { severities } from "../grading/kinds.ts";
import { standingOf } from "../grading/life.ts";
import type { Page, Paged } from "../paging.ts";
import type { FrictionDetail, FrictionFilter, FrictionThing, Scope } from "./frictionschema.ts";
import { placeOf } from "./lives.ts";
import type { FrictionPoint } from "./schema.ts";
import { promptsWithin } from "./scope.ts";

type PointRow = typeof frictionPoints.$inferSelect;
type State = FrictionPoint["state"];

/** Things that were met on previews only, of one prompt or provider; the newest. */
const maxPreviews = 1000;

const toPoint = ({ orgId: _, reportId: __, promptId: ___, position: ____, grounds: _____, ...point }: PointRow) =>
  point;
const iso = (at: number) => new Date(at).toISOString();
const sum = (values: (number | null)[], digits: number) => {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : Number(known.reduce((a, b) => a + b, 0).toFixed(digits));
};

const columns = {
  promptId: frictionLives.promptId,
  place: frictionLives.place,
  fingerprint: frictionLives.fingerprint,
  reportId: frictionLives.reportId,
  severity: frictionLives.severity,
  state: frictionLives.state,
  firstSeenAt: frictionLives.firstSeenAt,
  lastSeenAt: frictionLives.lastSeenAt,
  fixedAt: frictionLives.fixedAt,
  met: frictionLives.met,
  reached: frictionLives.reached,
  lostPoints: frictionLives.lostPoints,
  lostSeconds: frictionLives.lostSeconds,
  lostUsd: frictionLives.lostUsd,
};
type LifeRow = { [K in keyof typeof columns]: (typeof frictionLives.$inferSelect)[K] };

export function createFriction({ db }: Pick<Deps, "db">) {
  const own = db
    .select({
      point: frictionPoints,
      state: frictionLives.state,
      met: frictionLives.met,
      reached: frictionLives.reached,
    })
    .from(frictionPoints)
    .leftJoin(
      frictionLives,
      and(
        eq(frictionLives.orgId, frictionPoints.orgId),
        eq(frictionLives.promptId, frictionPoints.promptId),
        eq(frictionLives.place, sql.placeholder("place")),
        eq(frictionLives.fingerprint, frictionPoints.fingerprint),
      ),
    )
    .where(eq(frictionPoints.reportId, sql.placeholder("report")))
    .orderBy(asc(frictionPoints.position))
    .prepare();

  const ofPrompt = and(
    eq(frictionLives.orgId, sql.placeholder("org")),
    eq(frictionLives.promptId, sql.placeholder("prompt")),
  );
  const queries = {
    live: db
      .select(columns)
      .from(frictionLives)
      .where(and(ofPrompt, eq(frictionLives.place, "")))
      .prepare(),
    previews: db
      .select(columns)
      .from(frictionLives)
      .where(and(ofPrompt, gt(frictionLives.place, "")))
      .orderBy(desc(frictionLives.lastSeenAt))
      .limit(maxPreviews)
      .prepare(),
    one: db
      .select(columns)
      .from(frictionLives)
      .where(and(ofPrompt, eq(frictionLives.fingerprint, sql.placeholder("fingerprint"))))
      .orderBy(desc(frictionLives.lastSeenAt))
      .prepare(),
    told: db
      .select({ point: frictionPoints, slug: reports.slug })
      .from(frictionPoints)
      .innerJoin(reports, eq(reports.id, frictionPoints.reportId))
      .where(
        and(
          eq(frictionPoints.reportId, sql.placeholder("report")),
          eq(frictionPoints.fingerprint, sql.placeholder("fingerprint")),
        ),
      )
      .prepare(),
    life: db
      .select({ life: frictionLives.life })
      .from(frictionLives)
      .where(
        and(
          ofPrompt,
          eq(frictionLives.place, sql.placeholder("place")),
          eq(frictionLives.fingerprint, sql.placeholder("fingerprint")),
        ),
      )
      .prepare(),
  };

  /** Each thing once, with the rows of its prompts, the one that tells it first: live docs before previews, then the newest. */
  function thingsOf(org: OrgId, scope: Scope, fingerprint?: string): [LifeRow, ...LifeRow[]][] {
    const found = promptsWithin({ db }, org, scope).flatMap((prompt) =>
      fingerprint === undefined
        ? [...queries.live.all({ org, prompt }), ...queries.previews.all({ org, prompt })]
        : queries.one.all({ org, prompt, fingerprint }),
    );
    const live = found.filter(({ place }) => place === "");
    const previews = found.filter(({ place }) => place !== "").sort((a, b) => b.lastSeenAt - a.lastSeenAt);
    const things = Map.groupBy(live, (row) => row.fingerprint);
    for (const row of previews) if (!things.has(row.fingerprint)) things.set(row.fingerprint, [row]);
    return [...things.values()].map(
      (rows) => rows.sort((a, b) => b.lastSeenAt - a.lastSeenAt || (a.promptId < b.promptId ? -1 : 1)) as [LifeRow],
    );
  }

  /** A thing as its newest report tells it, with what became of it. */
  function toThings(things: [LifeRow, ...LifeRow[]][]): FrictionThing[] {
    return things.flatMap((rows) => {
      const [first] = rows;
      const found = queries.told.get({ report: first.reportId, fingerprint: first.fingerprint });
      if (!found) return [];
      const fixedAt = Math.max(...rows.map((row) => row.fixedAt ?? 0));
      const state = stateOf(rows);
      return {
        ...toPoint(found.point),
        seenIn: { runs: total(rows, "met"), of: total(rows, "reached") },
        state,
        slug: found.slug,
        isPreview: first.place !== "",
        firstSeenAt: iso(Math.min(...rows.map((row) => row.firstSeenAt))),
        lastSeenAt: iso(first.lastSeenAt),
        fixedAt: state === "fixed" ? iso(fixedAt) : null,
        cost: {
          points: sum(
            rows.map((row) => row.lostPoints),
            1,
          ),
          seconds: sum(
            rows.map((row) => row.lostSeconds),
            1,
          ),
          usd: sum(
            rows.map((row) => row.lostUsd),
            6,
          ),
        },
        promptIds: rows.map((row) => row.promptId),
      };
    });
  }

  return {
    /** The friction points of a report, worst first, with what became of each until now. A draft's are new where no published report has them. */
    ofReport(id: string, urlMap: Record<string, string>): FrictionPoint[] {
      return own.all({ report: id, place: placeOf(urlMap) }).map(({ point, state, met, reached }) => ({
        ...toPoint(point),
        seenIn: { runs: met ?? 1, of: reached ?? 1 },
        state: state ?? "new",
      }));
    },

    /** What stood in the way in the published reports of a prompt or of a provider's prompts, each thing once, worst and most frequent first; what only previews met comes last. */
    list(org: OrgId, { severity, state, ...scope }: FrictionFilter, { limit, offset }: Page): Paged<FrictionThing> {
      const wanted = thingsOf(org, scope)
        .map((rows) => ({
          rows,
          rank: severities.indexOf(rows[0].severity) + (rows[0].place === "" ? 0 : severities.length),
          state: stateOf(rows),
          met: total(rows, "met"),
        }))
        .filter((thing) => (severity ?? thing.rows[0].severity) === thing.rows[0].severity)
        .filter((thing) => (state ?? thing.state) === thing.state)
        .sort((a, b) => a.rank - b.rank || b.met - a.met || (a.rows[0].fingerprint < b.rows[0].fingerprint ? -1 : 1));
      const shown = wanted.slice(offset, offset + limit).map(({ rows }) => rows);
      return { items: toThings(shown), total: wanted.length };
    },

    /** One thing with its evaluations, oldest first. Throws not_found. */
    get(org: OrgId, fingerprint: string, scope: Scope): FrictionDetail {
      const [rows] = thingsOf(org, scope, fingerprint);
      const [thing] = rows ? toThings([rows]) : [];
      if (!rows || !thing) throw notFound(`no friction point has the fingerprint ${fingerprint} here`);
      const lives = rows.flatMap(({ promptId, place }) => {
        const row = queries.life.get({ org, prompt: promptId, place, fingerprint });
        return row ? [{ promptId, life: row.life }] : [];
      });
      return {
        ...thing,
        prompts: lives.map(({ promptId, life }) => {
          const { state, met, of, missed } = standingOf(life);
          return {
            promptId,
            state: state ?? "new",
            since: { met, of, missed },
            evaluations: life.evaluations.map(({ id, at, met, passed }) => ({
              evalRequestId: id,
              at: iso(at),
              met,
              of: met + passed,
            })),
          };
        }),
      };
    },
  };
}

const total = (rows: LifeRow[], name: "met" | "reached") => rows.reduce((all, row) => all + row[name], 0);

/** Over several prompts the worst of their states; what is new in one after it was fixed in another has come back. */
function stateOf(rows: LifeRow[]): State {
  const [only, ...more] = rows;
  if (only && more.length === 0) return only.state;
  const states = rows.map((row) => row.state);
  if (states.includes("regressed")) return "regressed";
  if (states.includes("open")) return "open";
  if (!states.includes("new")) return "fixed";
  const fixedAt = Math.min(
    ...rows.map((row) => (row.state === "fixed" ? (row.fixedAt ?? 0) : Number.POSITIVE_INFINITY)),
  );
  return rows.some((row) => row.state === "new" && row.firstSeenAt > fixedAt) ? "regressed" : "new";
}
