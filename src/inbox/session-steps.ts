import { partOf } from "../grading/actions/action.ts";
import { intentsOf } from "../grading/actions/call.ts";
import { actionsDuring } from "../grading/actions/session-actions.ts";
import { hasFailed, isProbe, isRedirect } from "../grading/events.ts";
import type { Facts } from "../grading/facts.ts";
import type { SessionStep } from "./schema.ts";

const maxSteps = 12;

type Step = SessionStep & { seq: number };

/** What an agent did, in order: pages that it read or guessed, requests and commands. A long session is cut to its first steps. */
export function stepsOf(facts: Facts): SessionStep[] {
  const steps = [...requestSteps(facts), ...commandSteps(facts)].sort((a, b) => a.seq - b.seq);
  return joinRepeats(steps).slice(0, maxSteps);
}

/** The requests, without redirects and without probes, which only ask whether a site has a file such as llms.txt. */
const requestSteps = ({ taskRequests, hosts }: Facts): Step[] =>
  taskRequests
    .filter((http) => !isRedirect(http) && !isProbe(http))
    .map((http): Step => {
      const { seq, url, method, status, provenance } = http;
      const isPage = method === "GET" && !hosts.isProduct(http);
      if (!isPage) return { seq, role: "request", what: `${method} ${pathOf(url)}`, status, times: 1 };
      const isGuess = hasFailed(http) && provenance === "guessed";
      return { seq, role: isGuess ? "guess" : "read", what: url, status, times: 1 };
    });

/** The calls that have no recorded request. */
function commandSteps(facts: Facts): Step[] {
  // The calls of a rule-based agent only check what it has read.
  if (facts.kind === "rules") return [];
  const requestIds = new Set(facts.taskRequests.map(({ id }) => id));
  return facts.calls
    .filter(({ id }) => !requestIds.has(id))
    .flatMap((call): Step[] => {
      // A call is one step, named by the first of the actions that it was made for.
      const [action] = intentsOf(actionsDuring(call, facts));
      // Program text is neither a request nor a command.
      if (action === undefined || action.kind === "code") return [];
      const isRequest = action.kind === "request";
      const what = isRequest
        ? `${partOf(action, "method") ?? "GET"} ${partOf(action, "path") ?? ""}`
        : (action.words[0] ?? "");
      if (what.trim() === "") return [];
      return [{ seq: call.seq, role: isRequest ? "request" : "command", what, status: null, times: 1 }];
    });
}

/** Joins consecutive guesses with the same status, and repetitions of the same step, into one step. */
function joinRepeats(steps: Step[]): SessionStep[] {
  const joined: SessionStep[] = [];
  for (const { role, what, status, times } of steps) {
    const last = joined.at(-1);
    const isSame = last?.role === role && last.status === status && (role === "guess" || what === last.what);
    if (isSame) last.times += times;
    else joined.push({ role, what, status, times });
  }
  return joined;
}

function pathOf(url: string): string {
  const parsed = URL.parse(url);
  return parsed === null ? url : parsed.pathname;
}
