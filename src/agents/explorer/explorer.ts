import type { Agent, AgentContext, AgentEvent, Task } from "../agent.ts";
import { checkContracts } from "./contract.ts";
import { checkDeclared } from "./declared.ts";
import { createFetching } from "./fetching.ts";
import { partsOf, toTerms } from "./goal.ts";
import { checkLinks } from "./links.ts";
import { checkSamples } from "./samples.ts";
import { type Session, thought } from "./session.ts";
import { checkSites } from "./site.ts";
import { walk } from "./walk.ts";

/**
 * The agent that needs no model key. It reads real docs as a careful agent would, by rules, and says so: each of its thoughts is marked
 * `rule`. It finds things by their words, so synonyms and other languages are beyond it. It never claims that a goal was met unless
 * declared checks say so.
 */
export function createExplorer({ version }: { version: string }): Agent {
  const description = { id: "explorer", version, model: null, kind: "rules" } as const;
  return {
    describe: () => description,
    preflight: () => [],
    run: (task, context) => explore(description, task, context),
  };
}

async function* explore(
  { id, version, kind }: { id: string; version: string; kind: string },
  task: Task,
  context: AgentContext,
): AsyncGenerator<AgentEvent, void> {
  context.signal.throwIfAborted();
  const goal = task.endGoal ?? task.text;
  let ids = 0;
  const session: Session = {
    task,
    context,
    fetching: createFetching(task, context),
    terms: toTerms(goal),
    parts: partsOf(goal),
    pages: [],
    origins: new Set([...task.startUrls, ...Object.keys(task.urlMap)].flatMap(originOf)),
    nextId: () => `t${++ids}`,
  };
  const words = session.terms.map(({ word }) => word);
  const starts = task.startUrls;
  yield {
    type: "milestone",
    name: "started",
    detail: { agent: id, version, kind, model: null, goal: goal.slice(0, 2000), starts },
  };
  yield { type: "milestone", name: "goal_terms", detail: { terms: words } };
  yield thought(
    words.length > 0
      ? `I work by rules, not by a model. I look for a page that speaks of ${words.join(", ")} and shows how.`
      : "I work by rules, not by a model. The goal holds no word that I could look for; I read the start addresses only.",
  );
  yield* walk(session);
  const verdict = yield* checkDeclared(session);
  yield* checkSamples(session);
  yield* checkSites(session);
  yield* checkLinks(session);
  yield* checkContracts(session);
  const cut = session.fetching.cut();
  if (cut) yield { type: "limit", ...cut };
  yield { type: "end", ...verdict };
}

const originOf = (address: string) =>
  URL.canParse(address) && /^https?:/i.test(address) ? new URL(address).origin : [];
