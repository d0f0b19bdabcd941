import type { AgentContext } from "../agent.ts";
import type { Task } from "../task.ts";
import { createFetcher } from "./fetching.ts";
import { goalPartsOf, toTerms } from "./goal.ts";
import type { Session } from "./session.ts";

/** The state of an exploration that has not read anything yet. */
export function openExploration(task: Task, context: AgentContext, goal: string): Session {
  let lastId = 0;
  return {
    task,
    context,
    fetcher: createFetcher(task, context),
    terms: toTerms(goal),
    goalParts: goalPartsOf(goal),
    pages: [],
    surveyed: [],
    listings: [],
    graph: new Map(),
    missingPages: new Map(),
    neededUrls: new Set(),
    incompletePages: new Set(),
    origins: new Set(
      [...task.startUrls, ...Object.keys(task.urlMap)].flatMap((address) => httpOriginOf(address) ?? []),
    ),
    docsFolders: new Map(),
    nextId: () => `t${++lastId}`,
  };
}

const httpOriginOf = (address: string): string | null =>
  URL.canParse(address) && /^https?:/i.test(address) ? new URL(address).origin : null;
