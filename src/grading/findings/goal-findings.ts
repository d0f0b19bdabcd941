import type { Facts } from "../facts.ts";
import type { GoalAnswer } from "../goal-answer.ts";
import { standardMethodology } from "../methodology.ts";
import { count, list, oneLine } from "../text.ts";
import { type FindingDraft, noCause, pageName } from "./finding.ts";
import { pathKinds } from "./finding-kinds.ts";

const goalSubject = ({ goal, goalTerms }: Facts) =>
  `goal ${oneLine(goal ?? goalTerms.toSorted().join(" "), 2000).toLowerCase()}`;

function quoteWords(terms: string[]): string {
  const words = terms.map((term) => `“${oneLine(term, 40)}”`);
  return list(words, 8);
}

/** Problems with the answer to the goal: far from the start page, without a sample, or in no clear section. */
export function goalDrafts(answer: GoalAnswer | null, facts: Facts): FindingDraft[] {
  if (answer === null || facts.pages.length === 0) return [];
  if (answer.state === "likely") {
    const isFar = answer.clicks === null || answer.clicks > standardMethodology.discoverability.path.frictionAbove;
    return isFar && answer.sections.length > 0 ? [farDraft(answer, facts)] : [];
  }
  return [unclearDraft(answer, facts)];
}

function nearestSectionOf({ nearest, sections }: GoalAnswer, facts: Facts): string {
  const best = nearest[0] ?? sections[0];
  if (best === undefined || best.url === null) return "";
  const heading = best.heading === null ? "" : `“${best.heading}” on `;
  return `${heading}${pageName(facts, best.url)}`;
}

/** An answer that takes many pages to reach. */
function farDraft(answer: GoalAnswer, facts: Facts): FindingDraft {
  const { frictionAbove } = standardMethodology.discoverability.path;
  const place = nearestSectionOf(answer, facts);
  const [distance, title] =
    answer.clicks === null
      ? ["No page that was read links to it.", pathKinds.unlinkedAnswer.title]
      : [
          `It is ${count(answer.clicks, "click")} from the start page.`,
          `${pathKinds.farAnswer.title}: ${count(answer.clicks, "click")}`,
        ];
  return {
    severity: answer.clicks !== null && answer.clicks > 2 * frictionAbove ? "medium" : "low",
    phase: "discovery",
    category: "other",
    subject: `far ${goalSubject(facts)}`,
    title,
    description: `The likely answer: ${place}. ${distance}`,
    url: answer.sections[0]?.url ?? null,
    cause: { ...noCause, goal: true },
    fix: `Link ${place} from the start page or an index.`,
    events: [answer.seq],
    preconditions: ["goal"],
    remedy: { key: "goal", title: "Link the answer to the goal from the start page" },
  };
}

/** What the explorer found in place of an answer, as sentences, each with a space before it; empty: there is nothing to say. */
function notesOf({ nearest, unseen, missing }: GoalAnswer, facts: Facts) {
  const missingInSection = missing.filter((word) => !unseen.includes(word));
  const otherPages = nearest.slice(1).map(({ url }) => pageName(facts, url));
  const [words, verb] = unseen.length === 1 ? ["word", "appears"] : ["words", "appear"];
  return {
    unseen: unseen.length === 0 ? "" : ` The ${words} ${quoteWords(unseen)} never ${verb} in the pages that were read.`,
    missing:
      missingInSection.length > 0 && nearest.length > 0 ? ` That section lacks ${quoteWords(missingInSection)}.` : "",
    others: otherPages.length === 0 ? "" : ` Also close: ${list(otherPages)}.`,
  };
}

/** No section clearly answers the goal. */
function unclearDraft(answer: GoalAnswer, facts: Facts): FindingDraft {
  const { nearest, unseen, missing, noOverlap, otherScript, noSample, isCovered } = answer;
  const { goal } = facts;
  const nearestSection = nearestSectionOf(answer, facts);
  const closest = nearest.length === 0 ? "" : ` Closest: ${nearestSection}.`;
  const notes = notesOf(answer, facts);
  const common = {
    // Nobody saw that the answer is missing: one of the nearest pages, or one that wasn't read, may have it in other words.
    severity: "low" as const,
    phase: "discovery" as const,
    category: "missing_docs" as const,
    subject: goalSubject(facts),
    url: nearest[0]?.url ?? facts.startUrls[0] ?? null,
    cause: { ...noCause, goal: true },
    events: [answer.seq],
    preconditions: ["goal"],
    isInferred: true,
  };
  if (otherScript !== null)
    return {
      ...common,
      category: "other",
      title: `The goal is in ${otherScript.goal} script, the docs in ${otherScript.docs}`,
      description: "The explorer compares words, so it can't tell whether the docs answer this goal.",
      fix: `Write the goal in the language of the docs, or start from docs in the language of the goal.`,
      remedy: { key: "goal script", title: "Write the goal in the language of the docs" },
    };
  if (noOverlap)
    return {
      ...common,
      title: "No page contains a word of the goal",
      description: `The explorer compares words.${notes.unseen} The docs may use other words or another language.`,
      fix: `Check that the docs answer this goal in the words of its users: ${quoteWords(missing.length > 0 ? missing : unseen)}.`,
      remedy: { key: "goal", title: "Answer the goal in the words of its users" },
    };
  if (noSample)
    return {
      ...common,
      title: `The closest section has no sample: ${nearestSection}`,
      description: `One section contains the words of the goal, but no code sample.${closest}`,
      fix: "Add a code sample to this section.",
      remedy: { key: "goal", title: "Add a code sample to the section about the goal" },
    };
  if (isCovered)
    return {
      ...common,
      category: "other",
      title: `Possible answer: ${nearestSection}`,
      description: `This section contains most of the goal and a sample, but the explorer isn't sure that it is the answer.${notes.missing}${notes.unseen}${notes.others}`,
      // The docs may be right as they are.
      owner: "agent",
      remedy: { key: "goal", title: "Check that this section answers the goal" },
    };
  return {
    ...common,
    title: `${pathKinds.unclearAnswer.title}.${closest}`,
    description: `${count(answer.pages + facts.surveyedPages.length, "page")} read.${closest}${notes.missing}${notes.unseen}${notes.others}`,
    fix: `Name the goal in the heading of that section.${unseen.length > 0 ? ` Use the words ${quoteWords(unseen)}.` : ""}`,
    remedy: {
      key: "goal",
      title: `Write one section with a sample${goal === null ? " about the goal" : ` for the goal “${oneLine(goal, 100).replace(/[.]$/, "")}”`}`,
    },
  };
}
