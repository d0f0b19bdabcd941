import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { listPromptItems, type PromptItem } from "../../prompts/lists.ts";
import { scoreText, titleOf } from "../../reports/labels.ts";
import { listReportsBySlug } from "../../reports/lists.ts";
import { listRunPage, listRunsByPrefix } from "../../runs/lists.ts";
import { renderFragment } from "../components/layout.tsx";
import { allDocs, toDocPath } from "../docs.ts";
import { menuItems } from "../menu-items.ts";
import { showPage } from "../page-requests.tsx";
import { type Hit, Hits, SearchPage } from "../pages/search.tsx";
import { queryOptions } from "../query.ts";
import { privateResponse } from "../responses.ts";
import { type Action, may, type Viewer } from "../viewer.ts";

/** Maximum number of hits of each kind. `detailedPrompts`: for this many prompts, their reports, newest run and action are also listed. */
const limits = { prompts: 6, detailedPrompts: 3, reportsPerPrompt: 2, runs: 3, docs: 4 };

const ownPages = [
  ...menuItems.map(([name, path]) => [name, path] as const),
  ["Members", "/settings/members"],
  ["API keys", "/settings/keys"],
  ["Models", "/settings/models"],
  ["Notifications", "/settings/notifications"],
  ["Retention and deleted items", "/settings/data"],
  ["Account", "/account"],
] as const;

const workersPage = ["Workers", "/settings/workers"] as const;

const actions: [title: string, path: string, action: Action][] = [
  ["New prompt", "/prompts/new", "write"],
  ["Add a provider", "/providers", "providers"],
  ["Invite a member", "/settings/members", "members"],
  ["Create an API key", "/settings/keys", "keys"],
  ["Add a webhook", "/settings/notifications", "notifications"],
  ["Change the time zone and limits", "/settings", "organization"],
];

/**
 * The hits in stored data: prompts that match, with their newest reports and runs and an action to run them. Also reports and runs whose ID or slug
 * was typed.
 */
function listDataHits(ctx: Context, viewer: Viewer, text: string): Hit[] {
  const { org } = viewer;
  const prompts = listPromptItems(ctx, org, { search: text }, { limit: limits.prompts, offset: 0 }).items;
  const detailedPrompts = prompts.slice(0, limits.detailedPrompts);
  const reportAndRunHits = detailedPrompts.flatMap(({ id }): Hit[] => {
    const newestRuns = listRunPage(ctx, org, { promptId: id }, { limit: limits.reportsPerPrompt }).items;
    const reportHits = newestRuns.flatMap(({ report, title, createdAt }) =>
      report ? [toReportHit({ ...report, prompt: { title }, createdAt })] : [],
    );
    return [...reportHits, ...newestRuns.slice(0, 1).map(toRunHit)];
  });
  const isId = /^[0-9a-f-]{8,36}$/i.test(text);
  return [
    ...(isId ? listRunsByPrefix(ctx, org, text, limits.runs).map(toRunHit) : []),
    ...(text.includes("-")
      ? listReportsBySlug(ctx, org, text.toLowerCase(), limits.reportsPerPrompt).map(toReportHit)
      : []),
    ...prompts.map((each): Hit => ({ kind: "Prompt", title: titleOf(each), path: `/prompts/${each.id}` })),
    ...(may(viewer, "run") ? detailedPrompts.map(toRunAction) : []),
    ...reportAndRunHits,
  ];
}

function listHits(ctx: Context, viewer: Viewer, text: string): Hit[] {
  const matches = (title: string) =>
    text
      .toLowerCase()
      .split(/\s+/)
      .every((word) => title.toLowerCase().includes(word));
  const pageHits = [...ownPages, ...(viewer.hasWorkers ? [workersPage] : [])]
    .filter(([title]) => matches(title))
    .map(([title, path]): Hit => ({ kind: "Page", title, path }));
  const actionHits = actions
    .filter(([title, , action]) => may(viewer, action) && matches(title))
    .map(([title, path]): Hit => ({ kind: "Action", title, path }));
  const docHits = allDocs()
    .filter(({ title }) => matches(title))
    .slice(0, limits.docs)
    .map(({ title, slug }): Hit => ({ kind: "Docs", title, path: toDocPath(slug) }));
  const placeHits = [...pageHits, ...actionHits];
  const hits = text === "" ? placeHits : [...listDataHits(ctx, viewer, text), ...placeHits, ...docHits];
  return [...new Map(hits.map((hit) => [hit.kind + hit.path, hit])).values()];
}

/** Searches the data of an organization, pages and actions. */
export const searchPages = (ctx: Context) =>
  new Elysia({ name: "search pages" }).get(
    "/search",
    ({ request, query: { q = "" } }) =>
      showPage(ctx, request, (viewer, site) => {
        const text = q.trim();
        const hits = listHits(ctx, viewer, text);
        if (request.headers.has("hx-request"))
          return privateResponse("html", renderFragment(<Hits {...{ site, hits }} />, viewer));
        return <SearchPage {...{ site, viewer, text, hits }} />;
      }),
    queryOptions({
      q: Type.Optional(Type.String({ maxLength: 200, description: "Words of a title, or an ID" })),
    }),
  );

const toRunAction = (prompt: PromptItem): Hit => ({
  kind: "Action",
  title: `Run ${titleOf(prompt)}`,
  path: `/prompts/${prompt.id}#run-form`,
});

type ReportLine = Parameters<typeof scoreText>[0] & {
  slug: string;
  prompt: { title: string | null };
  createdAt: string;
};

const toReportHit = (report: ReportLine): Hit => ({
  kind: "Report",
  title: `${report.prompt.title ?? report.slug}, ${scoreText(report)}`,
  at: report.createdAt,
  path: `/reports/${report.slug}`,
});

const toRunHit = ({ runId, title, createdAt }: { runId: string; title: string; createdAt: string }): Hit => ({
  kind: "Run",
  title,
  at: createdAt,
  path: `/runs/${runId}`,
});
