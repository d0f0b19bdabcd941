import type { Agent, AgentContext, AgentEvent } from "../agent.ts";
import type { Task } from "../task.ts";
import { checkAnchors } from "./anchors.ts";
import { checkApiDescriptions } from "./api-descriptions.ts";
import { checkApiSamples } from "./api-samples.ts";
import { conclude } from "./conclusion.ts";
import { readDocs } from "./docs-reading.ts";
import { openExploration } from "./exploration.ts";
import { createFrontier } from "./frontier.ts";
import { checkHeadings } from "./headings.ts";
import { checkLinks, checkListingLinks, suggestLinkTargets } from "./links.ts";
import { checkNoindex, checkPagesRead, checkPictures } from "./page-checks.ts";
import { checkPrerequisites } from "./prerequisites.ts";
import { checkSamples } from "./samples.ts";
import { createSectionIndex, rarityOf } from "./sections.ts";
import { type ReadPage, type Session, type Steps, thoughtEvent } from "./session.ts";
import { checkSites } from "./site.ts";
import { runSuccessChecks } from "./success-checks.ts";
import { surveySite } from "./survey.ts";
import { walk } from "./walk.ts";

/**
 * The agent that needs no model key. It reads real docs as a careful agent would, but by rules: each of its thoughts is
 * marked `rule`. It matches words, so it misses synonyms and other languages. It never claims that a goal was met
 * unless success checks prove it.
 */
export function createExplorer({ version }: { version: string }): Agent {
  const description = { id: "explorer", version, model: null, kind: "rules" } as const;
  return {
    describe: () => description,
    preflight: () => [],
    run: (task, context) =>
      task.reading ? readDocs(task.reading, task, context, version) : explore(description, task, context),
  };
}

async function* explore(
  { id, version, kind }: { id: string; version: string; kind: "rules" },
  task: Task,
  context: AgentContext,
): AsyncGenerator<AgentEvent, void> {
  context.signal.throwIfAborted();
  const goal = task.endGoal ?? task.text;
  const session = openExploration(task, context, goal);
  const words = session.terms.map(({ word }) => word);
  yield {
    type: "milestone",
    name: "started",
    detail: { agent: id, version, kind, model: null, goal: goal.slice(0, 2000), starts: task.startUrls },
  };
  yield { type: "milestone", name: "goal_terms", detail: { terms: words } };
  yield thoughtEvent(
    words.length > 0
      ? `Looking for a page that shows how to do this: ${words.join(", ")}.`
      : "The goal has no words to search for, so only the start URLs are read.",
  );
  const index = createSectionIndex(session.terms);
  const frontier = createFrontier(session.terms, session.origins, (term) => rarityOf(term, index));
  const searchEnd = yield* walk(session, frontier, index);
  const { outcome, reason } = yield* runSuccessChecks(session);
  const testedKeys = new Set<string>();
  yield* checkPages(session, session.pages, testedKeys);
  yield* checkSites(session);
  yield* markAsSurvey(surveySite(session, frontier, index));
  // The answer may be on a page of the survey, so from here on, every step looks at those pages too.
  yield* conclude(session, index, searchEnd);
  yield* checkPagesRead(session, session.pages);
  yield* markAsSurvey(checkPagesRead(session, session.surveyed));
  yield* checkPictures(session, index);
  yield* checkNoindex(session, index);
  yield* markAsSurvey(checkPages(session, session.surveyed, testedKeys));
  yield* checkAnchors(session, session.pages);
  yield* markAsSurvey(checkAnchors(session, session.surveyed));
  yield* markAsSurvey(checkListingLinks(session, testedKeys));
  const apiDescriptions = yield* checkApiDescriptions(session);
  yield* checkPrerequisites(session, index, apiDescriptions);
  yield* checkApiSamples(session, session.pages, apiDescriptions);
  yield* markAsSurvey(checkApiSamples(session, session.surveyed, apiDescriptions));
  yield* suggestLinkTargets(session);
  const limit = session.fetcher.firstLimit;
  if (limit) yield { type: "limit", ...limit };
  yield { type: "end", outcome, reason };
}

async function* checkPages(session: Session, pages: ReadPage[], testedKeys: Set<string>): Steps {
  yield* checkHeadings(session, pages);
  yield* checkSamples(session, pages);
  yield* checkLinks(session, pages, testedKeys);
}

/** Marks events of the survey, which comes after the search for the answer. */
async function* markAsSurvey(steps: Steps): Steps {
  for await (const event of steps) yield { ...event, phase: "survey" };
}
