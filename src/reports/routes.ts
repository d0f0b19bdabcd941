import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { Elysia } from "elysia";
import { errors, listOf, type OrgOf, operation } from "../api.ts";
import { jsonBody } from "../body.ts";
import type { Deps, OrgId } from "../deps.ts";
import { badRequest } from "../errors.ts";
import { pageQuery } from "../paging.ts";
import { getArtefact, toArtefactAnswer } from "./artefacts.ts";
import { type Compare, Comparison } from "./compare.ts";
import type { Gradings } from "./gradings.ts";
import type { Reports } from "./reports.ts";
import { GradingList, Report, ReportPatch, ReportSummary, reportFilter } from "./schema.ts";
import { ReportsComparison } from "./sidebyside.ts";
import type { SideQuery } from "./sides.ts";
import { getTrace } from "./trace.ts";
import { Trace, traceQuery } from "./traceschema.ts";

const path = Type.Object({ slug: Type.String() });

const sideQuery = (side: "base" | "head", description: string) => ({
  [side]: Type.String({ minLength: 1, maxLength: 4000, description }),
  [`${side}Agent`]: Type.Optional(Type.String({ maxLength: 100, description: "Only runs of this agent" })),
  [`${side}Model`]: Type.Optional(Type.String({ maxLength: 200, description: "Only runs of this model" })),
  [`${side}Args`]: Type.Optional(
    Type.String({ maxLength: 4000, description: 'Only runs with these template arguments, as {"language":"Python"}' }),
  ),
});
const CompareQuery = Type.Object({
  ...sideQuery(
    "base",
    "Slugs of reports, ids of eval requests or ids of prompts (their last ten published runs), separated by commas; or baseline, for what the head is held against",
  ),
  ...sideQuery("head", "The same for the other side; with 6 prompts or more on both sides prompts are paired"),
});

function toSlugs(text: string): string[] {
  const slugs = listIn(text);
  if (slugs.length < 2 || slugs.length > 10) throw badRequest("slugs must be 2 to 10, separated by commas");
  return slugs;
}

const listIn = (text: string): string[] => text.split(",").filter((item) => item !== "");

function toSide(query: Record<string, string | undefined>, side: "base" | "head"): SideQuery {
  const { [side]: of = "", [`${side}Agent`]: agent, [`${side}Model`]: model, [`${side}Args`]: args } = query;
  return { of: listIn(of), agent, model, templateArgs: args === undefined ? undefined : readArgs(`${side}Args`, args) };
}

function readArgs(field: string, text: string): Record<string, string> {
  try {
    const value: unknown = JSON.parse(text);
    if (Value.Check(Type.Record(Type.String(), Type.String()), value)) return value;
  } catch {}
  throw badRequest(`${field} must be a JSON object of strings, as in {"language":"Python"}`);
}

const methodologyQuery = Type.Object({
  methodology: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 64,
      description: "As it was graded by this methodology: its id, or 8 digits or more of its hash",
    }),
  ),
});

/** Throws bad_request, not_found. */
function change(reports: Reports, gradings: Gradings, org: OrgId, slug: string, patch: ReportPatch): Report {
  if (patch.status === undefined && patch.gradingId === undefined)
    throw badRequest("the body must have a status or a gradingId");
  if (patch.gradingId !== undefined) gradings.pinGrading(org, slug, patch.gradingId);
  return patch.status === undefined ? reports.getReport(org, slug) : reports.setStatus(org, slug, patch.status);
}

type Parts = { reports: Reports; compare: Compare; gradings: Gradings };

export const reportRoutes = ({ reports, compare, gradings }: Parts, deps: Pick<Deps, "db">, orgOf: OrgOf) =>
  new Elysia({ name: "reports" })
    .get(
      "/api/v1/compare",
      ({ request, query }) => {
        const asked = query as Record<string, string | undefined>;
        return compare.compareSides(orgOf(request), toSide(asked, "base"), toSide(asked, "head"));
      },
      {
        query: CompareQuery,
        ...operation(
          "Reports",
          "compare",
          "Tell whether a head is better or worse than its base, and how sure that is",
          {
            200: Comparison,
            ...errors(400, 404),
          },
        ),
      },
    )
    .get(
      "/api/v1/compare/reports",
      ({ request, query }) => compare.compareReports(orgOf(request), toSlugs(query.slugs)),
      {
        query: Type.Object({ slugs: Type.String({ maxLength: 2000, description: "2 to 10, separated by commas" }) }),
        ...operation("Reports", "compareReports", "Put 2 to 10 reports side by side", {
          200: ReportsComparison,
          ...errors(400, 404),
        }),
      },
    )
    .get(
      "/api/v1/reports",
      ({ request, query: { limit = 100, offset, ...filter }, set }) => {
        const { items, total } = reports.listReports(orgOf(request), filter, { limit, offset: offset ?? 0 });
        set.headers["x-total-count"] = String(total);
        return items;
      },
      {
        query: Type.Object({ ...reportFilter, ...pageQuery }),
        ...operation("Reports", "listReports", "List the reports of the organisation, newest first", {
          200: listOf(ReportSummary, "Reports, newest first"),
          ...errors(400),
        }),
      },
    )
    .get(
      "/api/v1/reports/:slug",
      ({ request, params: { slug }, query: { methodology } }) =>
        methodology === undefined
          ? reports.getReport(orgOf(request), slug)
          : gradings.getGraded(orgOf(request), slug, methodology),
      {
        params: path,
        query: methodologyQuery,
        ...operation("Reports", "getReport", "Get a whole report: scores, friction points, recommendations", {
          200: Report,
          ...errors(400, 404),
        }),
      },
    )
    .get(
      "/api/v1/reports/:slug/gradings",
      ({ request, params }) => gradings.listGradings(orgOf(request), params.slug),
      {
        params: path,
        ...operation("Reports", "listGradings", "List how a report was graded, each time, and how far judges agree", {
          200: GradingList,
          ...errors(404),
        }),
      },
    )
    .patch(
      "/api/v1/reports/:slug",
      ({ request, params, body }) => change(reports, gradings, orgOf(request), params.slug, body),
      {
        params: path,
        ...jsonBody(ReportPatch),
        ...operation(
          "Reports",
          "updateReport",
          "Publish a report, make it a draft, archive it, or pin one of its gradings",
          {
            200: Report,
            ...errors(400, 404, 413),
          },
        ),
      },
    )
    .get(
      "/api/v1/reports/:slug/trace",
      ({ request, params, query }) => getTrace(deps, orgOf(request), params.slug, query),
      {
        params: path,
        query: Type.Object(traceQuery),
        ...operation("Reports", "getSessionTrace", "Read the session behind a report, a page at a time", {
          200: Trace,
          ...errors(400, 404),
        }),
      },
    )
    .get(
      "/api/v1/reports/:slug/artefacts/:name",
      ({ request, params }) => toArtefactAnswer(getArtefact(deps, orgOf(request), params.slug, params.name)),
      {
        params: Type.Object({
          slug: Type.String(),
          name: Type.String({ description: "As the artefact of a tool_result in the session names it" }),
        }),
        ...picture(operation("Reports", "getArtefact", "Get a picture that the agent took", errors(404))),
      },
    );

/** Adds the one success that is no JSON. */
const picture = <T extends { detail: { responses: object } }>(of: T): T => ({
  ...of,
  detail: {
    ...of.detail,
    responses: {
      200: {
        description: "The picture",
        content: { "image/webp": { schema: { type: "string", contentEncoding: "binary" } } },
      },
      ...of.detail.responses,
    },
  },
});
