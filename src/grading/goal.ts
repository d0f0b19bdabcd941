import type { Facts, GoalFound } from "./facts.ts";
import { noCause, pageName } from "./finding.ts";
import { table } from "./methodology.ts";
import type { Draft } from "./way.ts";
import { count, line, list } from "./words.ts";

/** A goal that can be reached, but only by a reader who opens page after page. */
function farDraft(found: Extract<GoalFound, { state: "covered" }>, facts: Facts): Draft {
  const read = count(found.pages, "page");
  const { url, heading } = found.sections[0]!;
  const place = [heading !== null && `“${heading}”`, url !== null && `on ${pageName(facts, url)}`]
    .filter(Boolean)
    .join(" ");
  const terms = list(
    facts.goalTerms.map((term) => line(term, 40)),
    8,
  );
  return {
    severity: found.pages > 2 * table.discoverability.way.frictionAbove ? "medium" : "low",
    phase: "discovery",
    category: "other",
    subject: `far ${goalSubject(facts, facts.goalTerms)}`,
    title: `The goal is far from the start: ${read} until its words were found`,
    description: `The explorer opened ${read}, first those whose links spoke of the goal, before it came to ${place || "a section that holds its words"}.`,
    url,
    cause: { ...noCause, goal: true },
    fix: `Link ${place || "the section"} from the start page or an index, in words that its readers have for the goal${terms && `: ${terms}`}.`,
    events: [found.seq],
    grounds: ["goal"],
    remedy: ["goal", "Shorten the way to the section that answers the goal"],
  };
}

const goalSubject = ({ goal }: Facts, terms: string[]) =>
  `goal ${line(goal ?? terms.toSorted().join(" "), 2000).toLowerCase()}`;

/** What came of the goal: not found, or found only after many pages. */
export function goalDrafts(found: GoalFound | null, facts: Facts): Draft[] {
  if (found?.state === "covered" && found.pages > table.discoverability.way.frictionAbove)
    return [farDraft(found, facts)];
  if (found?.state !== "missed" || facts.pages.length === 0) return [];
  const words = (terms: string[]) =>
    list(
      terms.map((term) => line(term, 40)),
      8,
    );
  const terms = found.covered.length + found.missing.length;
  const read = count(found.pages, "page");
  const best =
    found.best === null ? "" : ` It comes nearest under “${found.best.heading}” on ${pageName(facts, found.best.url)}.`;
  const unseen = found.unseen.length > 0 ? ` On none of the pages read: ${words(found.unseen)}.` : "";
  const [title, description] = found.noOverlap
    ? [
        "No word of the goal stands in the pages read",
        `The explorer goes by words and met none of these in ${read}: ${words(found.missing)}. The docs may use other words or another language.`,
      ]
    : found.noSample
      ? [
          "The goal is spoken of, but without a sample to copy",
          `The words of the goal stand together in one section, which holds no code sample.${best}`,
        ]
      : [
          `No section read holds the words of the goal; missing: ${words(found.missing)}`,
          `After ${read}, the best section held ${found.covered.length} of the goal's ${count(terms, "word")}; it lacked ${words(found.missing)}.${best}${unseen}`,
        ];
  const covered = terms === 0 ? 0 : found.covered.length / terms;
  return [
    {
      severity: found.noOverlap ? "low" : found.noSample || covered >= 0.5 ? "medium" : "high",
      phase: "discovery",
      category: "missing_docs",
      subject: goalSubject(facts, found.missing),
      title: title!,
      description: description!,
      url: found.best?.url ?? facts.starts[0] ?? null,
      cause: { ...noCause, goal: true },
      fix: found.noOverlap
        ? `Check that the docs answer this goal in words that its users have. Looked for: ${words(found.missing)}.`
        : found.noSample
          ? "Add a code sample to the section that speaks of the goal."
          : `Name the goal in the heading of the section that answers it, or write one with a sample, and link it from the start page. Words that are missing: ${words(found.missing)}.`,
      events: [found.seq],
      grounds: ["goal"],
      remedy: [
        "goal",
        found.noSample
          ? "Show how the goal is reached with a code sample"
          : "Answer the goal in one section, in the goal's words",
      ],
    },
  ];
}
