import type { Candidate } from "./candidate.ts";
import { candidatesOfCommands, candidatesOfTools } from "./commands.ts";
import { candidatesOfGuides } from "./guides.ts";
import { installCandidate } from "./install.ts";
import { candidatesOfOperations } from "./operations.ts";
import { contentStems, overlapOf } from "./phrases.ts";
import type { DropReason, ProposalReason, ProposalResult, ProposalSource, TaskProposal } from "./proposal.ts";
import { candidatesOfSkill } from "./skills.ts";

/** Two tasks are the same if they share this part of the words of the shorter one. */
const sameShare = 0.5;
const maxPerPage = 2;
/** Reasons whose source has many parts, such as an API description. */
const fileReasons: ReadonlySet<ProposalReason> = new Set(["operation", "command", "tool", "skill"]);
const maxPerFile = 8;
/** Weak candidates are proposed only until there are this many proposals. */
const minProposals = 5;
const maxPerTag: Record<string, number> = { onboard: 2, errors: 3, cleanup: 3 };
/** Added to the score of a task whose title has all words of `primaryTask`, the task that most people do first. */
const primaryScore = 8;
/** A task is the primary one if it has at least this share of the words of `primaryTask`. */
const minPrimaryShare = 0.5;

/**
 * Proposes tasks by rules from what was read: actions that guides show, operations of an API, commands and tools. The task that most people do first
 * comes before all others. The docs must be in English.
 */
export function proposeTasks(source: ProposalSource): ProposalResult {
  const counts = new Map<DropReason, number>();
  const drop = (reason: DropReason) => void counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const install = installCandidate(source);
  const candidates = [
    ...(install === null ? [] : [install]),
    ...candidatesOfGuides(source, drop),
    ...candidatesOfOperations(source, drop),
    ...candidatesOfCommands(source, drop),
    ...candidatesOfTools(source, drop),
    ...candidatesOfSkill(source, drop),
  ].map((candidate) => withPrimary(candidate, source.primaryTask));
  const proposals: TaskProposal[] = [];
  const isWeak = (candidate: Candidate) => candidate.isWeak === true && candidate.proposal.why !== "primary";
  const sorted = candidates.toSorted((a, b) => b.score - a.score);
  for (const candidate of [...sorted.filter((each) => !isWeak(each)), ...sorted.filter(isWeak)]) {
    const { proposal } = candidate;
    // A weak candidate that isn't needed is dropped because it says too little without its page.
    const isNeeded = !isWeak(candidate) || proposals.length < Math.min(minProposals, source.count);
    const reason = isNeeded ? objectionTo(proposal, proposals, source.count) : "needs_page";
    if (reason === null) proposals.push(proposal);
    else drop(reason);
  }
  return { proposals, dropped: [...counts].map(([reason, count]) => ({ reason, count })) };
}

function objectionTo(proposal: TaskProposal, chosen: TaskProposal[], count: number): DropReason | null {
  const { title, source, tags, why } = proposal;
  if (chosen.some((other) => isSame(other, proposal))) return "duplicate";
  const maxPerSource = fileReasons.has(why) ? maxPerFile : maxPerPage;
  if (chosen.filter((other) => other.source.url === source.url).length >= maxPerSource) return "over_count";
  const tag = tags[0] ?? "";
  const ofTag = chosen.filter((other) => other.tags[0] === tag).length;
  if (why !== "primary" && ofTag >= (maxPerTag[tag] ?? count)) return "over_count";
  if (chosen.length >= count) return "over_count";
  // A title without words can't be compared with others.
  return contentStems(title).length === 0 ? "over_count" : null;
}

const isSame = (a: TaskProposal, b: TaskProposal): boolean => saysSame(a, b) && a.tags[0] === b.tags[0];

/** Whether the titles of two tasks say the same. */
export const saysSame = (a: TaskProposal, b: TaskProposal): boolean =>
  // A few words say what an operation of an API does, and most of these words are the same in other operations.
  a.why === "operation" && b.why === "operation"
    ? a.source.quote === b.source.quote
    : overlapOf(a.title, b.title) > sameShare;

function withPrimary(candidate: Candidate, primaryTask: string | null): Candidate {
  if (primaryTask === null) return candidate;
  const { proposal, score } = candidate;
  const stems = new Set(contentStems(primaryTask));
  const share = stems.intersection(new Set(contentStems(proposal.title))).size / Math.max(1, stems.size);
  if (share < minPrimaryShare) return { ...candidate, score: score + share };
  return { ...candidate, proposal: { ...proposal, why: "primary" }, score: score + primaryScore * share };
}
