import { askedFor } from "../exposure.ts";
import type { Facts } from "../facts.ts";
import type { Evidence } from "../grade.ts";
import { type Recovery, recoveriesOf, triedBy } from "../recoveries.ts";
import { flat, line, sentence, shortAddress } from "../text.ts";
import { type Draft, inOrder, noCause } from "./finding.ts";

/** An error of the product or of the agent's machine, related to the docs. */
export function conductDrafts(facts: Facts): Draft[] {
  return recoveriesOf(facts).map((recovery) => draftOf(recovery, facts));
}

/** The failed request or command, as it appears in a docs page: the path, or a simple command. */
function namesOf(call: Recovery["call"], facts: Facts): string[] {
  if (call === null) return [];
  const { requests, commands } = triedBy(call, facts);
  const paths = requests.flatMap(({ url }) => URL.parse(url)?.pathname ?? []).filter((path) => path.length > 3);
  const lines = commands.map(({ program, verb, targets }) => [program, verb, ...targets].filter(Boolean).join(" "));
  return [...paths, ...lines.filter((each) => each.includes(" "))];
}

/** The page that contains what failed but not what worked instead, so it misleads its readers. */
function wrongPage({ failure, call, fix }: Recovery, facts: Facts): (Evidence & { seq: number }) | null {
  const right = namesOf(fix, facts);
  const wrong = namesOf(call, facts).filter((name) => !right.includes(name));
  if (wrong.length === 0 || right.length === 0) return null;
  for (const { seq, tool, output } of facts.results) {
    if (tool !== "fetch_page" || seq > failure.seqs[0]! || typeof output?.text !== "string") continue;
    const lines = output.text.split("\n");
    const at = lines.findIndex((each) => wrong.some((name) => flat(each).includes(name)));
    if (at < 0) continue;
    const found = wrong.find((name) => flat(lines[at]!).includes(name))!;
    const url = typeof output.url === "string" ? output.url : null;
    return { seq, url, line: at + 1, found, expected: right.find((name) => !wrong.includes(name)) ?? null };
  }
  return null;
}

function draftOf(recovery: Recovery, facts: Facts): Draft {
  const { failure, fate, call } = recovery;
  const { target, tool, url, code } = failure;
  const message = sentence(failure.message);
  const cause = { ...noCause, failures: [failure.seqs[0]!] };
  const request = call && triedBy(call, facts).requests[0];
  const name = request ? `${request.method.toUpperCase()} ${shortAddress(request.url, facts.starts[0])}` : tool;
  const http = facts.taskRequests.find(({ seq }) => seq === failure.seqs[0]);
  const isDown = target === "product" && (code === "timeout" || (http !== undefined && (http.status ?? 500) >= 500));
  const wrong = wrongPage(recovery, facts);
  const common = { cause, events: failure.seqs, fix: null, phase: "execution" as const };
  if (wrong) {
    const { seq, ...evidence } = wrong;
    const isCommand = evidence.found?.includes(" ");
    return {
      ...common,
      ...{ severity: fate === "notAtAll" ? "high" : "medium", category: "misleading_docs", owner: "fixes", evidence },
      subject: `wrong ${evidence.url} ${evidence.found}`,
      title: `The docs name the wrong ${isCommand ? "command" : "address"}: ${evidence.found}`,
      description: `${message} ${evidence.expected === null ? "" : `What worked: ${evidence.expected}.`}`,
      url: evidence.url,
      events: inOrder([...failure.seqs, seq]),
      grounds: [evidence.url === null ? "run" : askedFor(evidence.url)],
      remedy: [`wrong ${evidence.url} ${evidence.found}`, `Correct ${evidence.found}`],
      fix: evidence.expected === null ? null : `Replace ${evidence.found} with ${evidence.expected}.`,
    };
  }
  const title =
    target === "product"
      ? `${name} failed${message ? `: ${message}` : ""}`
      : `${call?.tool ?? tool} failed${message ? `: ${message}` : ""}`;
  return {
    ...common,
    severity: isDown ? "high" : fate === "fromMessage" ? "low" : "medium",
    category: isDown ? "other" : target === "product" && fate !== "fromMessage" ? "unclear_error" : "other",
    owner: isDown ? "network" : "agent",
    subject: `${target} ${name} ${failure.message.replace(/\d+/g, "#")}`,
    title: line(title, 160),
    description: message || "No reason given.",
    url: target === "product" ? (request?.url ?? url) : null,
    grounds: [call ? `tool ${call.tool}` : "run"],
    remedy: [`tool ${name}`, `Fix the failure of ${name}`],
  };
}
