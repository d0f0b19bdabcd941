import { firstRequestOf } from "../call-actions.ts";
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
    // null: an agent that guesses because the docs are wrong makes a mistake that another finding already has.
    if (draft === null) return [];
    return [draft ?? conductDraft(recovery, facts)];
  });
}

function conductDraft(recovery: Recovery, facts: Facts): FindingDraft {
  const { failure, resolution, call } = recovery;
  const { target, tool, url, code } = failure;
  const message = sentence(failure.message);
  const cause = { ...noCause, failures: [failure.seqs[0]!] };
  const request =
    call &&
    firstRequestOf(
      call,
      facts.taskRequests.filter(({ id }) => id === call.id),
    );
  const name = request ? `${request.method.toUpperCase()} ${shortUrl(request.url, facts.startUrls[0])}` : tool;
  const http = facts.taskRequests.find(({ seq }) => seq === failure.seqs[0]);
  const isDown = target === "product" && (code === "timeout" || (http !== undefined && (http.status ?? 500) >= 500));
  const common = { cause, events: failure.seqs, fix: null, phase: "execution" as const };
  const title =
    target === "product"
      ? `${name} failed${message ? `: ${message}` : ""}`
      : `${call?.tool ?? tool} failed${message ? `: ${message}` : ""}`;
  return {
    ...common,
    severity: isDown ? "high" : resolution === "fromMessage" ? "low" : "medium",
    category: isDown ? "other" : target === "product" && resolution !== "fromMessage" ? "unclear_error" : "other",
    owner: isDown ? "network" : "agent",
    subject: `${target} ${name} ${failure.message.replace(/\d+/g, "#")}`,
    title: oneLine(title, 160),
    description: message || "No reason given.",
    url: target === "product" ? (request?.url ?? url) : null,
    preconditions: [call ? `tool ${call.tool}` : "run"],
    remedy: { key: `tool ${name}`, title: `Fix the failure of ${name}` },
  };
}
