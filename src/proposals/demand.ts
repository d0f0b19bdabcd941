import type { Context, OrgId } from "../context.ts";
import { listFieldFriction } from "../field/field.ts";
import { type DocsMap, getDocsMap } from "../friction/docs-map.ts";
import { capitalize } from "../grading/text.ts";
import { pageKey } from "../net/page-key.ts";
import { decodePercent } from "../net/percent.ts";
import { httpUrl } from "../schema.ts";
import { listTrafficOf } from "../traffic/traffic.ts";
import type { ProposalSource, TaskProposal } from "./proposal.ts";

/** Something that agents asked for at a URL and didn't find. `topic`: what they looked for, in a few words. `evidence`: what shows it. */
type Demand = {
  why: Extract<TaskProposal["why"], "guessed_url" | "field_report" | "field_traffic">;
  url: string;
  topic: string;
  evidence: string;
  times: number;
};

/** Maximum number of guessed URLs, and of field reports. */
const maxDemand = 100;
const maxTopicChars = 80;

/**
 * Tasks from what agents asked for and didn't find in the docs of a source: URLs that they guessed, and problems that they reported from the field.
 * The most requested ones come first.
 */
export function proposeFromDemand(ctx: Context, org: OrgId, source: ProposalSource): TaskProposal[] {
  const map = getDocsMap(ctx, org, { everything: true }, { limit: Number.MAX_SAFE_INTEGER });
  const demand = [...listGuessedUrls(map), ...listFieldReports(ctx, org), ...listReadOutside(ctx, org, source, map)]
    .filter(({ url, topic }) => isInDocs(source.docsUrl, url) && /\p{L}{3}/u.test(topic))
    .sort((a, b) => b.times - a.times);
  const byTopic = Map.groupBy(demand, ({ topic }) => topic.toLowerCase());
  return [...byTopic.values()].flatMap(([first]) => (first ? toProposal(first, source) : []));
}

/** URLs that agents guessed in runs and that don't exist. */
const listGuessedUrls = ({ guessed }: DocsMap): Demand[] =>
  guessed.slice(0, maxDemand).map(({ url, misses }) => ({
    why: "guessed_url",
    url,
    topic: topicOfUrl(url),
    evidence: url,
    times: misses,
  }));

/** Open problems that agents reported at a URL. */
const listFieldReports = (ctx: Context, org: OrgId): Demand[] =>
  listFieldFriction(ctx, org, { state: "open" }, { limit: maxDemand, offset: 0 }).items.map(
    ({ where, title, reports }) => ({
      why: "field_report",
      url: where,
      topic: topicOfUrl(where),
      evidence: title,
      times: reports,
    }),
  );

/** Pages that agents outside of runs read or asked for, and that no run has read. */
function listReadOutside(ctx: Context, org: OrgId, { docsUrl }: ProposalSource, { pages }: DocsMap): Demand[] {
  // The URLs of traffic are page keys.
  const readPages = new Set(pages.map(({ url }) => pageKey(url)));
  return listTrafficOf(ctx, org, docsUrl)
    .filter(({ url }) => !readPages.has(url))
    .map(({ url, times }) => ({ why: "field_traffic", url, topic: topicOfUrl(url), evidence: url, times }));
}

const isInDocs = (docsUrl: string, url: string): boolean => httpUrl(url)?.host === new URL(docsUrl).host;

/** The words of the last segment of a path: `/guides/rotate-keys.md` is about `rotate keys`. */
function topicOfUrl(address: string): string {
  const segments = httpUrl(address)?.pathname.split("/") ?? [];
  const isIndex = (segment: string) => /^(index(\.\w+)?)?$/.test(segment);
  const last = segments.findLast((segment) => !isIndex(segment)) ?? "";
  return (decodePercent(last) ?? "")
    .replace(/\.[a-z]{2,5}$/i, "")
    .replace(/[^\p{L}\p{N}.]+/gu, " ")
    .trim()
    .slice(0, maxTopicChars);
}

const evidenceText: Record<Demand["why"], (times: number) => string> = {
  guessed_url: (times) => `Agents guessed this URL ${times} times; it doesn't exist`,
  field_report: (times) => `Agents in the field reported this ${times} times`,
  field_traffic: (times) => `Agents outside of runs read or asked for this page ${times} times`,
};

function toProposal({ why, url, topic, evidence, times }: Demand, { product, docsUrl }: ProposalSource): TaskProposal {
  return {
    title: capitalize(topic),
    text: `Find out how ${product} supports “${topic}”, and try it.`,
    endGoal: `It is clear from the docs of ${product} how to do this, or that it can't be done: ${topic}.`,
    additionalUrls: [{ url: docsUrl }],
    tags: ["asked-for"],
    declaredChecks: [],
    checksNotRun: null,
    hints: [evidenceText[why](times)],
    needs: [],
    by: "demand",
    source: { url, line: 1, quote: evidence.slice(0, 1000) },
    docsOwnWords: false,
    why,
  };
}
