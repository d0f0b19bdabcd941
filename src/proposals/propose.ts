import { toStems } from "../agents/explorer/goal.ts";
import type { DropReason, ProposalPage, ProposalResult, ProposalSource, TaskProposal } from "./proposal.ts";

/** Verbs with which a heading asks for something that an agent can do. */
const verb =
  /^(add|archive|authenticate|back up|build|cache|call|change|compress|configure|connect|convert|copy|create|customize|define|delete|deploy|detect|download|enable|encrypt|expand|export|extend|fetch|filter|find|format|generate|handle|import|install|invite|invoke|limit|load|lock|log|merge|migrate|monitor|mount|parse|preview|print|process|protect|publish|query|read|receive|recover|redirect|register|remove|rename|render|replace|resize|restore|retry|revoke|rotate|route|run|schedule|search|secure|send|serve|set up|share|sign|sort|split|start|store|stream|sync|test|trace|transform|translate|update|upgrade|upload|use|validate|verify|watch|wrap|write) /i;

/** Headings such as "Backing up a folder". Words that double their last letter, or lose an e, have their own form. */
const gerund = /^(\p{L}+)ing( up)? /u;

/** Pages that are about the project rather than about its use, by title or path. */
const otherKind =
  /\b(change-?log|changes|release-?notes?|whats?-?new|upgrad\w+|migration|contribut\w+|develop(ers?|ment)|hacking|internals?|architecture|roadmap|faq|comparison|benchmarks?|licen[cs]e|code-of-conduct|security-policy|translations?|glossary|about)\b/i;

/** Words that need the page around them. */
const needsPage =
  /\b(this|that|these|those|it|its|them|more|above|below|following|next|previous|again|our|your own|continued|example|examples)\b/i;

const smallWords = /^(the|and|with|for|from|over|into|your|using)$/;

const maxPerPage = 2;
/** Two tasks with this share of their words in common are the same. */
const sameShare = 0.5;

type Candidate = { proposal: TaskProposal; rank: number };

/**
 * Proposes what headings ask for, if their section shows how in a sample: pages in the order of reading, what most people do first before all
 * others. It needs English docs, and knows nothing of what matters but the order and `primaryTask`.
 */
export function proposeTasks(source: ProposalSource): ProposalResult {
  const dropped = new Map<DropReason, number>();
  const drop = (reason: DropReason) => void dropped.set(reason, (dropped.get(reason) ?? 0) + 1);
  const primary = new Set(toStems(source.primaryTask ?? ""));
  const pages = [...(source.readme ? [source.readme] : []), ...source.pages];
  const candidates = pages.flatMap((page, i) => {
    if (otherKind.test(page.title) || otherKind.test(pathOf(page.url))) return [];
    return candidatesOf(page, source, primary, drop).map((each) => ({ ...each, rank: each.rank - i / 1000 }));
  });
  const proposals: TaskProposal[] = [];
  for (const { proposal } of candidates.sort((a, b) => b.rank - a.rank)) {
    if (proposals.some((other) => isSame(other.title, proposal.title))) drop("duplicate");
    else if (proposals.length >= source.count) drop("over_count");
    else proposals.push(proposal);
  }
  return { proposals, dropped: [...dropped].map(([reason, count]) => ({ reason, count })) };
}

function candidatesOf(
  page: ProposalPage,
  { product, docsUrl }: ProposalSource,
  primary: ReadonlySet<string>,
  drop: (reason: DropReason) => void,
): Candidate[] {
  const lines = page.markdown.split("\n");
  const candidates = page.headings.flatMap(({ text, line, level }, i): Candidate[] => {
    const title = toImperative(text);
    if (level > 4 || !verb.test(`${title} `) || title.split(" ").length < 2) return [];
    const end = page.headings[i + 1]?.line ?? lines.length + 1;
    if (needsPage.test(title)) drop("needs_page");
    else if (!page.samples.some((sample) => sample.line >= line && sample.line < end)) drop("no_action");
    else
      return [{ proposal: toProposal(title, { page, line, lines, product, docsUrl }), rank: rankOf(title, primary) }];
    return [];
  });
  for (const _ of candidates.slice(maxPerPage)) drop("step");
  return candidates.sort((a, b) => b.rank - a.rank).slice(0, maxPerPage);
}

type Place = { page: ProposalPage; line: number; lines: string[]; product: string; docsUrl: string };

function toProposal(title: string, { page, line, lines, product, docsUrl }: Place): TaskProposal {
  const task = title.toLowerCase().includes(product.toLowerCase()) ? `${title}.` : `${title} with ${product}.`;
  return {
    title,
    text: task,
    endGoal: task,
    additionalUrls: [{ url: docsUrl }],
    tags: [/^install\b/i.test(title) ? "install" : "task"],
    declaredChecks: [],
    hints: [],
    needs: [],
    by: "rules",
    source: { url: page.url, line, quote: (lines[line - 1] ?? title).slice(0, 1000) },
    docsOwnWords: true,
    why: "heading",
  };
}

/** "Backing up a folder" and "How to back up a folder" as "Back up a folder"; numbers of steps are left out. */
function toImperative(heading: string): string {
  const text = heading
    .replace(/^[\d.)\s]+/, "")
    .replace(/^how (to|do i|can i) /i, "")
    .replace(/[`*_]|[?.:!]+$/g, "")
    .replace(/\s+/g, " ")
    .trim();
  const [, stem = "", up = ""] = gerund.exec(text) ?? [];
  const forms = [stem, `${stem}e`, stem.replace(/(\p{L})\1$/u, "$1")];
  const imperative = forms.find((form) => form !== "" && verb.test(`${form}${up} `));
  const plain = imperative === undefined ? text : `${imperative}${up}${text.slice(`${stem}ing${up}`.length)}`;
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

/** Share of the words of the primary task in a title. */
function rankOf(title: string, primary: ReadonlySet<string>): number {
  if (primary.size === 0) return 0;
  return toStems(title).filter((stem) => primary.has(stem)).length / primary.size;
}

function isSame(a: string, b: string): boolean {
  const wordsOf = (title: string) =>
    new Set(toStems(title).filter((stem) => stem.length > 2 && !smallWords.test(stem)));
  const [words, others] = [wordsOf(a), wordsOf(b)];
  const common = [...words].filter((word) => others.has(word)).length;
  return common / Math.max(1, Math.min(words.size, others.size)) > sameShare;
}

const pathOf = (url: string): string => URL.parse(url)?.pathname.replaceAll(/[/_.]/g, " ") ?? "";
