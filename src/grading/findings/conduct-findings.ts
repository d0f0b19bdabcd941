import { partOf } from "../actions/action.ts";
import { actionsDuring } from "../actions/session-actions.ts";
import type { EventOf } from "../events.ts";
import type { Facts } from "../facts.ts";
import { type Recovery, recoveriesOf } from "../recoveries.ts";
import { oneLine, sentence, shortUrl } from "../text.ts";
import { type FindingDraft, noCause } from "./finding.ts";
import { misleadingPages } from "./misleading-pages.ts";

/** The errors of the product and of the agent's machine as findings. Those that misleading docs caused are findings about the docs instead. */
export function conductDrafts(facts: Facts): FindingDraft[] {
  const recoveries = recoveriesOf(facts);
  const misleadingDrafts = misleadingPages(recoveries, facts);
  return recoveries.flatMap((recovery) => {
    const draft = misleadingDrafts.get(recovery);
    // null: a guess after an error from wrong docs, which the finding about that error covers.
    if (draft === null) return [];
    return [draft ?? conductDraft(recovery, facts)];
  });
}

/** The first request of a call: one that was seen during it, or else one that its input shows. */
function firstRequestOf(call: EventOf<"tool_call">, facts: Facts): { method: string; url: string } | undefined {
  const seen = facts.taskRequests.find(({ id }) => id === call.id);
  const shown = actionsDuring(call, facts).find((action) => action.kind === "request");
  return seen ?? (shown && { method: partOf(shown, "method") ?? "GET", url: shown.url });
}

function conductDraft({ failure, resolution, call }: Recovery, facts: Facts): FindingDraft {
  const { target, tool, url, code, seqs } = failure;
  const message = sentence(failure.message);
  const request = call && firstRequestOf(call, facts);
  const name = request ? `${request.method.toUpperCase()} ${shortUrl(request.url, facts.startUrls[0])}` : tool;
  const isOfProduct = target === "product";
  const http = facts.taskRequests.find(({ seq }) => seq === seqs[0]);
  const hasServerFailed = http !== undefined && (http.status === null || http.status >= 500);
  const isDown = isOfProduct && (code === "timeout" || hasServerFailed);
  const isHelpful = resolution === "fromMessage";
  const severityOfMistake = isHelpful ? "low" : "medium";
  return {
    severity: isDown ? "high" : severityOfMistake,
    phase: "execution",
    category: isOfProduct && !isDown && !isHelpful ? "unclear_error" : "other",
    owner: isDown ? "network" : "agent",
    subject: `${target} ${name} ${failure.message.replace(/\d+/g, "#")}`,
    title: oneLine(`${isOfProduct ? name : (call?.tool ?? tool)} failed${message ? `: ${message}` : ""}`, 160),
    description: message || "No reason given.",
    url: isOfProduct ? (request?.url ?? url) : null,
    cause: { ...noCause, failures: seqs.slice(0, 1) },
    events: seqs,
    fix: null,
    preconditions: [call ? `tool ${call.tool}` : "run"],
    remedy: { key: `tool ${name}`, title: `Fix the failure of ${name}` },
  };
}
