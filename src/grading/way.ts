import { type EventOf, type Facts, type Failure, failed, type Http, isProbe } from "./facts.ts";
import { type Finding, fingerprint, noCause, pageName } from "./finding.ts";
import { goalDrafts } from "./goal.ts";
import { slowPageMs } from "./methodology.ts";
import { askedFor, readOf } from "./reach.ts";
import { count, duration, line, list, sameAddress, sentence, shortAddress } from "./words.ts";

export type Draft = Pick<Finding, "severity" | "phase" | "category" | "title" | "description" | "url" | "grounds"> &
  Partial<Pick<Finding, "cause" | "place" | "fix" | "quote">> & {
    subject: string;
    events: number[];
    remedy: [key: string, title: string, kind?: "links" | "way"];
  };

const toFinding = ({ subject, remedy: [key, title, kind = "way"], ...draft }: Draft): Finding => ({
  cause: noCause,
  fix: null,
  quote: null,
  ...draft,
  place: draft.place ?? line(draft.title, 120),
  title: line(draft.title, 160),
  description: line(draft.description, 800),
  url: draft.url === null ? null : line(draft.url, 2000),
  fingerprint: fingerprint(draft.category, subject),
  remedy: { key, title: line(title, 160), kind },
});

/** What stood in the way of this one session, apart from what was tested on purpose. */
export function wayFindings(facts: Facts): Finding[] {
  const blocked = facts.pages.length === 0;
  const drafts = [
    ...facts.failures.map((failure) => failureDraft(failure, facts, blocked)),
    ...facts.interruptions.map((interruption) => interruptionDraft(interruption, facts)),
    ...slowDrafts(facts),
    ...goalDrafts(facts.goalFound, facts),
    ...facts.limits.map((limit) => limitDraft(limit, facts)),
  ].filter((draft) => draft !== null);
  const nothing = blocked && facts.way.length > 0 && !drafts.some(({ severity }) => severity === "critical");
  return [...drafts, ...(nothing ? [nothingRead(facts)] : [])].map(toFinding);
}

function failureDraft(failure: Failure, facts: Facts, blocked: boolean): Draft | null {
  const request = facts.way.find((http) => http.seq === failure.seqs[0] && failed(http));
  const requests = facts.way.filter((http) => http === request || (http.id !== null && http.id === failure.id));
  const start = failure.url !== null && facts.starts.some((each) => sameAddress(each) === sameAddress(failure.url!));
  const blocks = blocked && start;
  // Where nothing could be read, this is also why the goal was not found.
  const cause = {
    ...noCause,
    failures: [failure.seqs[0]!],
    requests: requests.map((http) => http.seq),
    goal: blocks,
  };
  const common = { cause, events: failure.seqs, url: failure.url, phase: "discovery" as const };
  if (request !== undefined)
    return isProbe(request) ? null : { ...requestDraft(request, failure, facts, blocks), cause, events: failure.seqs };
  const message = sentence(failure.message);
  if (failure.url === null)
    return {
      ...common,
      severity: "medium",
      phase: "execution",
      category: "other",
      subject: `${failure.tool} ${failure.message.replace(/\d+/g, "#")}`,
      title: `${failure.what === "tool" ? `The tool ${failure.tool} failed` : `Error in ${failure.tool}`}${message ? `: ${message}` : ""}`,
      description: message || "No reason was given.",
      grounds: [failure.what === "tool" ? `tool ${failure.tool}` : "run"],
      remedy: [`tool ${failure.tool}`, `Keep ${failure.tool} from failing`],
    };
  const place = shortAddress(failure.url, facts.starts[0]);
  const robots = failure.code === "disallowed";
  return {
    ...common,
    severity: blocks ? "critical" : robots ? "medium" : "high",
    category: robots ? "auth" : failure.code === "soft_404" ? "silent_failure" : "unreadable_page",
    subject: sameAddress(failure.url),
    title: robots ? `robots.txt keeps agents from ${place}` : `Page cannot be read: ${place}`,
    description: message || "The page was fetched, but there was nothing to read.",
    grounds: [askedFor(failure.url)],
    place,
    fix: robots
      ? null
      : "Answer with HTML or Markdown that holds the text of the page, under a content type that says so.",
    remedy: robots ? ["robots", "Let agents read the docs in robots.txt"] : ["unreadable", "Make pages readable"],
  };
}

function requestDraft(http: Http, failure: Failure, facts: Facts, blocks: boolean): Draft {
  const answer = http.status === null ? "no answer" : String(http.status);
  const place = `${shortAddress(http.url, facts.starts[0])} (${answer})`;
  const host = URL.parse(http.url)?.host ?? http.url;
  const from = http.foundOn === null ? "" : ` The address stood on ${http.foundOn}.`;
  const description = `${http.method} ${http.url}: ${sentence(failure.message)}${from}`;
  const base = {
    phase: "discovery" as const,
    description,
    url: http.foundOn ?? http.url,
    subject: sameAddress(http.url),
    place,
    // A link that was mended is not followed to the same address again; a guess can only be made again.
    grounds: [http.foundOn === null || http.provenance === "guessed" ? askedFor(http.url) : readOf(http.foundOn)],
    events: [],
  };
  if (http.status === 401 || http.status === 402 || http.status === 403 || http.status === 407)
    return {
      ...base,
      severity: blocks ? "critical" : "high",
      phase: "setup",
      category: "auth",
      title: `Access refused: ${place}`,
      remedy: [`auth ${host}`, `Let agents read ${host} without signing in`],
    };
  if (http.status === 429 || failure.code === "timeout")
    return {
      ...base,
      severity: blocks ? "critical" : "medium",
      category: "slow",
      title: `${http.status === 429 ? "Too many requests" : "No answer in time"}: ${place}`,
      remedy: [`host ${host}`, `Let ${host} answer every request`],
    };
  if (http.status === null || http.status >= 500)
    return {
      ...base,
      severity: blocks ? "critical" : "high",
      category: "other",
      title: `The site failed to answer: ${place}`,
      remedy: [`host ${host}`, `Let ${host} answer every request`],
    };
  if (http.provenance === "guessed" || http.provenance === "search")
    return {
      ...base,
      severity: "low",
      category: "missing_docs",
      title: `Nothing at an address that was ${http.provenance === "guessed" ? "guessed" : "found by search"}: ${place}`,
      remedy: ["guessed", "Redirect the addresses that agents try"],
    };
  const where = http.foundOn === null ? "among the start addresses" : `on ${pageName(facts, http.foundOn)}`;
  const key = `links ${http.foundOn === null ? http.url : http.foundOn}`;
  return {
    ...base,
    severity: blocks ? "critical" : http.provenance === "given" ? "high" : "medium",
    category: "dead_link",
    title: `Dead link ${where}: ${place}`,
    remedy: [key, `Mend dead links ${where}`, "links"],
  };
}

/** A person was needed: to let the agent in where access was refused, or for anything else. */
function interruptionDraft({ seq, url, question }: EventOf<"interruption">, facts: Facts): Draft {
  const refused = url !== null && facts.way.find((http) => sameAddress(http.url) === sameAddress(url) && failed(http));
  const failure = refused && facts.failures.find((each) => each.seqs[0] === refused.seq);
  const cause = { ...noCause, interruptions: [seq] };
  if (refused && failure) {
    const draft = requestDraft(refused, failure, facts, false);
    if (draft.category === "auth") return { ...draft, cause, events: [seq], quote: null };
  }
  const asked = line(question, 120);
  return {
    severity: "high",
    phase: "execution",
    category: "needs_human",
    subject: url === null ? asked.toLowerCase().replace(/\d+/g, "#") : sameAddress(url),
    title: `A person was needed: ${asked}`,
    description: `The agent had to ask: ${sentence(line(question, 500))}`,
    url,
    cause,
    events: [seq],
    grounds: [url === null ? "run" : askedFor(url)],
    remedy: [`human ${asked}`, "Let the step be done without a person"],
  };
}

function slowDrafts(facts: Facts): Draft[] {
  return facts.way
    .filter((http) => !failed(http) && http.ms > slowPageMs)
    .map((http) => ({
      severity: http.ms > 10_000 ? "medium" : "low",
      phase: "discovery",
      category: "slow",
      subject: sameAddress(http.url),
      title: `Slow page: ${pageName(facts, http.url)} took ${duration(http.ms / 1000)}`,
      description: `${http.method} ${http.url} was answered after ${duration(http.ms / 1000)}; pages should take ${slowPageMs / 1000} s at most.`,
      url: http.url,
      cause: { ...noCause, requests: [http.seq] },
      fix: `Answer each page within ${slowPageMs / 1000} s.`,
      place: `${shortAddress(http.url, facts.starts[0])} (${duration(http.ms / 1000)})`,
      events: [http.seq],
      grounds: [askedFor(http.url)],
      remedy: ["slow", "Answer pages faster"],
    }));
}

function limitDraft({ seq, limit, value, unit }: EventOf<"limit">, facts: Facts): Draft {
  const covered = facts.goalFound?.state === "covered" || facts.outcome === "succeeded";
  const goal = facts.kind === "model" ? "the goal was reached" : "the words of the goal were covered";
  const amount = unit === "ms" ? duration(value / 1000) : `${value} ${line(unit, 20)}`;
  const name = line(limit, 40).replaceAll("_", " ");
  return {
    severity: covered ? "low" : "medium",
    phase: "discovery",
    category: "other",
    subject: `limit ${name}`,
    title: `Stopped at a limit: ${name}, ${amount}`,
    description: `The run was limited to ${amount} and reached it${covered ? ` after ${goal}; some tests were not made` : ` before ${goal}`}.`,
    url: null,
    fix: covered
      ? "Raise the limit of the run for a full set of tests."
      : "Shorten the way from the start page to the goal, or raise the limit of the run.",
    events: [seq],
    grounds: ["run"],
    remedy: ["limit", "Bring the goal within the limits of a run"],
  };
}

function nothingRead(facts: Facts): Draft {
  const starts = list(facts.starts.map((start) => line(start, 200)));
  return {
    severity: "critical",
    phase: "discovery",
    category: "unreadable_page",
    subject: `start ${facts.starts
      .map((start) => sameAddress(start))
      .sort()
      .join(" ")}`,
    title: "Nothing could be read at the start addresses",
    description: `${count(facts.way.length, "request")} brought no page that could be read. Begun at: ${starts}.`,
    url: facts.starts[0] ?? null,
    events: facts.way.map((http) => http.seq),
    grounds: facts.starts.slice(0, 1).map(askedFor),
    remedy: ["unreadable", "Make pages readable"],
  };
}
