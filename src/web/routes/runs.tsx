import { type Static, Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { runStatuses, triggers } from "../../db/tables.ts";
import { type Progress, placeWords, toPlace } from "../../runs/follow.ts";
import { listUsed } from "../../runs/usage.ts";
import { Id, OneOf } from "../../schema.ts";
import type { Service } from "../../service.ts";
import { privateAnswer } from "../answer.ts";
import { hidden, page } from "../describe.ts";
import type { Front } from "../front.tsx";
import { toPage, toPart } from "../layout.tsx";
import { fragments, type Message } from "../live.ts";
import { EvalPage, EvalPart } from "../pages/eval.tsx";
import { RunPage, RunState } from "../pages/run.tsx";
import { RunsPage, RunsPart } from "../pages/runs.tsx";
import { TimelineRows } from "../pages/timeline.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { titleOf } from "../words.ts";

const perPage = 50;
const params = Type.Object({ runId: Type.String({ description: "uuid of the run" }) });
const evalParams = Type.Object({ evalId: Type.String({ description: "uuid of the eval request" }) });

/** A form sends the filter that nobody chose as an empty text. */
const orEmpty = <T extends ReturnType<typeof Type.Unsafe>>(schema: T) =>
  Type.Optional(Type.Union([schema, Type.Literal("")]));
const Filter = Type.Object({
  promptId: Type.Optional(Type.Union([Id, Type.Literal("")])),
  status: orEmpty(OneOf(runStatuses)),
  agent: Type.Optional(Type.String({ maxLength: 100 })),
  trigger: orEmpty(OneOf(triggers)),
  before: Type.Optional(Type.String({ format: "uuid", description: "The last run of the page before" })),
});

const filterOf = ({ promptId, status, agent, trigger }: Static<typeof Filter>) => ({
  promptId: promptId || undefined,
  status: status || undefined,
  agent: agent || undefined,
  trigger: trigger || undefined,
});

/** Runs, waiting, under way and done, one by one and as evaluations. */
export const runPages = (service: Service, front: Front) => {
  const { deps, endings, runs, runLists, promptLists, agentChoices, follow, evals, requests } = service;

  const shownRuns = (viewer: Viewer, site: Site, query: Static<typeof Filter>) => {
    const filter = filterOf(query);
    const { before } = query;
    return {
      site,
      filter,
      before,
      now: deps.now(),
      ...runLists.listNewest(viewer.org, filter, { limit: perPage, before }),
    };
  };

  const stateOf = (viewer: Viewer, site: Site, { run, place }: Progress) => {
    const { task } = runs.getAsked(viewer.org, run.runId);
    const used = listUsed(deps, viewer.org, run, task, place.attempt);
    const attempts = endings.listAttempts(viewer.org, run.runId);
    return { site, viewer, title: titleOf(task), run, used, attempts, now: deps.now() };
  };

  const shownEval = (viewer: Viewer, site: Site, id: string) => ({
    site,
    request: evals.getEvalRequest(viewer.org, id),
    now: deps.now(),
  });

  /** What a browser puts into the page of a run, as it comes. */
  async function* toPartials(viewer: Viewer, site: Site, runId: string, after: string | null, gone: AbortSignal) {
    const seen = toPlace(after);
    let attempt = seen?.attempt ?? 0;
    for await (const progress of follow.follow(viewer.org, runId, seen, gone)) {
      const { events, place } = progress;
      // Another attempt is another session: it takes the place of the one before.
      const swap = place.attempt === attempt ? "beforeend" : "innerHTML";
      attempt = place.attempt;
      const state = toPart(<RunState {...stateOf(viewer, site, progress)} />, viewer);
      const rows = toPart(<TimelineRows events={events} />);
      const data = `<hx-partial hx-target="#run-state" hx-swap="innerMorph">${state}</hx-partial>${
        events.length > 0 ? `<hx-partial hx-target="#timeline" hx-swap="${swap}">${rows}</hx-partial>` : ""
      }`;
      yield { id: placeWords(place), data } satisfies Message;
    }
    yield { event: "end", data: "" } satisfies Message;
  }

  return new Elysia({ name: "run pages" })
    .get(
      "/runs",
      ({ request, query }) =>
        front.show(request, (viewer, site) => {
          const shown = shownRuns(viewer, site, query);
          const { items: prompts } = promptLists.findLines(viewer.org, { status: "all" }, { limit: 200, offset: 0 });
          const total = runs.countRuns(viewer.org);
          const agents = agentChoices.map(({ id }) => id);
          return privateAnswer("html", toPage(<RunsPage {...{ viewer, prompts, agents, total, ...shown }} />));
        }),
      { query: Filter, ...page("runsPage", "Runs, for people", { refuses: true, needsKey: true }) },
    )
    .get(
      "/runs/live",
      ({ request, query }) =>
        front.stream(
          request,
          (viewer, site) => (gone) =>
            fragments(() => toPart(<RunsPart {...shownRuns(viewer, site, query)} />, viewer), follow.watch(gone)),
        ),
      {
        query: Filter,
        ...hidden,
      },
    )
    .get(
      "/runs/:runId",
      ({ request, params }) =>
        front.show(request, (viewer, site) => {
          const progress = follow.getProgress(viewer.org, params.runId);
          const asked = runs.getAsked(viewer.org, params.runId);
          const state = stateOf(viewer, site, progress);
          return privateAnswer("html", toPage(<RunPage {...{ asked, progress, ...state }} />));
        }),
      { params, ...page("runPage", "A run, for people, live until it has ended", { misses: true, needsKey: true }) },
    )
    .get(
      "/runs/:runId/events",
      ({ request, params, query }) =>
        front.stream(request, (viewer, site) => {
          const { runId } = runs.getRun(viewer.org, params.runId);
          const after = request.headers.get("last-event-id") ?? query.after ?? null;
          return (gone) => toPartials(viewer, site, runId, after, gone);
        }),
      {
        params,
        query: Type.Object({ after: Type.Optional(Type.String({ description: "Place in the session: attempt.seq" })) }),
        ...hidden,
      },
    )
    .post(
      "/runs/:runId/cancel",
      ({ request, params }) =>
        front.act(request, "run", async (viewer) => {
          await endings.cancelRun(viewer.org, params.runId, viewer.person?.name ?? "somebody on the pages");
          return front.seeOther(`/runs/${params.runId}`);
        }),
      { params, ...hidden },
    )
    .post(
      "/runs/:runId/rerun",
      ({ request, params }) =>
        front.act(request, "run", async (viewer) => {
          const { runIds } = await requests.requestAgain(viewer.org, params.runId, "web");
          return front.seeOther(`/runs/${runIds[0]}`);
        }),
      { params, ...hidden },
    )
    .get(
      "/evals/:evalId",
      ({ request, params }) =>
        front.show(request, (viewer, site) => {
          const shown = shownEval(viewer, site, params.evalId);
          return privateAnswer("html", toPage(<EvalPage {...{ viewer, ...shown }} />));
        }),
      {
        params: evalParams,
        ...page("evalPage", "The runs of an evaluation together, for people", { misses: true, needsKey: true }),
      },
    )
    .get(
      "/evals/:evalId/live",
      ({ request, params }) =>
        front.stream(request, (viewer, site) => {
          const render = () => toPart(<EvalPart {...shownEval(viewer, site, params.evalId)} />, viewer);
          render();
          return (gone) => fragments(render, follow.watch(gone));
        }),
      {
        params: evalParams,
        ...hidden,
      },
    );
};
