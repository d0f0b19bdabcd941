import { type Static, Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../../context.ts";
import { runStatuses, triggers } from "../../db/tables/runs.ts";
import type { Message } from "../../http/event-stream.ts";
import { sortBy } from "../../http/sorting.ts";
import { listPromptChoices } from "../../prompts/lists.ts";
import { listAgents } from "../../prompts/prompts.ts";
import { toOutputResponse } from "../../reports/artifacts.ts";
import { titleOf } from "../../reports/labels.ts";
import { cancelRun } from "../../runs/endings.ts";
import { followRun, formatPosition, getRunProgress, type Progress, parsePosition } from "../../runs/follow.ts";
import { docsVariantOf, listRunPage, runSortColumns } from "../../runs/lists.ts";
import { requestRerun } from "../../runs/requests.ts";
import { countRuns, getRun, getRunTask, listAttempts } from "../../runs/runs.ts";
import { listLimitUsage } from "../../runs/usage.ts";
import { Id, OneOf } from "../../schema.ts";
import { renderFragment } from "../components/layout.tsx";
import { TimelineRows } from "../components/timeline.tsx";
import { showPage, streamPage, streamPart, submitForm } from "../page-requests.tsx";
import { seeOtherWithToast } from "../page-responses.ts";
import { requireConfirmation } from "../pages/confirm.tsx";
import { RunEnd, RunPage, RunState, TimelineState } from "../pages/run.tsx";
import { RunsPage, RunsPart } from "../pages/runs.tsx";
import { queryOptions } from "../query.ts";
import type { Site } from "../site.ts";
import { type Viewer, webSourceOf } from "../viewer.ts";

const perPage = 50;
const attemptQuery = { attempt: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000_000 })) };

const RunsQuery = Type.Object({
  promptId: Type.Optional(Id),
  status: Type.Optional(OneOf(runStatuses)),
  agent: Type.Optional(Type.String({ maxLength: 100 })),
  model: Type.Optional(Type.String({ maxLength: 200 })),
  trigger: Type.Optional(OneOf(triggers)),
  sort: sortBy(runSortColumns),
  before: Type.Optional(Type.String({ format: "uuid", description: "ID of the last run on the previous page" })),
});

const runListProps = (ctx: Context, viewer: Viewer, site: Site, query: Static<typeof RunsQuery>) => {
  const { before, ...filter } = query;
  return {
    site,
    filter,
    before,
    now: ctx.now(),
    ...listRunPage(ctx, viewer.org, filter, { limit: perPage, before }),
  };
};

const runStateProps = (ctx: Context, viewer: Viewer, site: Site, { run, position }: Progress) => {
  const requested = getRunTask(ctx, viewer.org, run.runId);
  const limitUsage = listLimitUsage(ctx, viewer.org, run, requested.task, position.attempt);
  const attempts = listAttempts(ctx, viewer.org, run.runId);
  const docsVariant = docsVariantOf({ urlMap: requested.urlMap, edits: requested.task.edits });
  return {
    site,
    viewer,
    title: titleOf(requested.task),
    docsVariant,
    requested,
    run,
    limitUsage,
    attempts,
    now: ctx.now(),
  };
};

/** An element that htmx inserts into the page. `target`: CSS selector of the place. `swap`: how it is inserted. */
const partial = (target: string, swap: "innerHTML" | "innerMorph" | "beforeend", html: string) =>
  `<hx-partial hx-target="${target}" hx-swap="${swap}">${html}</hx-partial>`;

/** Page fragments of a run as server-sent events: its state and its new events. */
async function* followRunPage(
  ctx: Context,
  viewer: Viewer,
  site: Site,
  runId: string,
  after: string | null,
  signal: AbortSignal,
) {
  const lastPosition = parsePosition(after);
  let attempt = lastPosition?.attempt ?? 0;
  for await (const progress of followRun(ctx, viewer.org, runId, signal, { after: lastPosition })) {
    const { events, position, isOver } = progress;
    // Each attempt is a session of its own. So the events of a new attempt replace the events of the previous one.
    const swap = position.attempt === attempt ? "beforeend" : "innerHTML";
    attempt = position.attempt;
    const state = renderFragment(<RunState {...runStateProps(ctx, viewer, site, progress)} />, viewer);
    const rows = renderFragment(<TimelineRows events={events} />);
    const data = [
      partial("#run-state", "innerMorph", state),
      ...(events.length > 0 ? [partial("#timeline", swap, rows)] : []),
      ...(isOver ? partialsAtEnd(progress) : []),
    ].join("");
    yield { id: formatPosition(position), data } satisfies Message;
    if (isOver) yield { event: "end", data: "" } satisfies Message;
  }
}

/** The fragments that replace the live parts of a run's page when the run has ended. */
const partialsAtEnd = ({ run, position }: Progress): string[] => [
  partial("#timeline-state", "innerHTML", renderFragment(<TimelineState isOpen={false} events={position.seq + 1} />)),
  partial("#follow", "innerHTML", ""),
  partial("#toast", "innerHTML", ""),
  partial("#run-ended", "innerHTML", renderFragment(<RunEnd run={run} />)),
];

/** Pages of runs. */
export const runPages = (ctx: Context) =>
  new Elysia({ name: "run pages" })
    .get(
      "/runs",
      ({ request, query }) =>
        showPage(ctx, request, (viewer, site) => {
          const listProps = runListProps(ctx, viewer, site, query);
          const total = countRuns(ctx, viewer.org);
          const agents = listAgents(ctx).map(({ id }) => id);
          return <RunsPage {...{ viewer, prompts: listPromptChoices(ctx, viewer.org), agents, total, ...listProps }} />;
        }),
      queryOptions(RunsQuery.properties),
    )
    .get(
      "/runs/live",
      ({ request, query }) =>
        streamPart(
          ctx,
          request,
          (viewer, site) => () => renderFragment(<RunsPart {...runListProps(ctx, viewer, site, query)} />, viewer),
        ),
      queryOptions(RunsQuery.properties),
    )
    .get(
      "/runs/:runId",
      ({ request, params, query }) =>
        showPage(ctx, request, (viewer, site) => {
          const progress = getRunProgress(ctx, viewer.org, params.runId, query.attempt);
          const state = runStateProps(ctx, viewer, site, progress);
          return <RunPage {...{ progress, shownAttempt: query.attempt, ...state }} />;
        }),
      queryOptions(attemptQuery),
    )
    .get(
      "/runs/:runId/output",
      ({ request, params, query }) =>
        showPage(ctx, request, ({ org }) => {
          const { runId, attempt } = getRun(ctx, org, params.runId);
          return toOutputResponse(ctx, org, { runId, attempt: query.attempt ?? attempt });
        }),
      queryOptions(attemptQuery),
    )
    .get(
      "/runs/:runId/events",
      ({ request, params, query }) =>
        streamPage(ctx, request, (viewer, site) => {
          const { runId } = getRun(ctx, viewer.org, params.runId);
          const after = request.headers.get("last-event-id") ?? query.after ?? null;
          return (signal) => followRunPage(ctx, viewer, site, runId, after, signal);
        }),
      {
        query: Type.Object({ after: Type.Optional(Type.String({ description: "Place in the session: attempt.seq" })) }),
      },
    )
    .post("/runs/:runId/cancel", ({ request, params }) =>
      submitForm(ctx, request, "run", async (viewer, form) => {
        const { completedAt } = getRun(ctx, viewer.org, params.runId);
        if (completedAt === null)
          requireConfirmation(form, {
            title: "Cancel this run?",
            consequences: ["It ends without a report. Events recorded so far are kept. Model costs are not refunded."],
            buttonText: "Cancel run",
            back: `/runs/${params.runId}`,
          });
        await cancelRun(ctx, viewer.org, params.runId, viewer.person.name);
        return seeOtherWithToast(ctx, `/runs/${params.runId}`, "runCancelled");
      }),
    )
    .post("/runs/:runId/rerun", ({ request, params }) =>
      submitForm(ctx, request, "run", async (viewer) => {
        const { runIds } = await requestRerun(ctx, viewer.org, params.runId, webSourceOf(viewer));
        return seeOtherWithToast(ctx, `/runs/${runIds[0]}`, "runStarted");
      }),
    );
