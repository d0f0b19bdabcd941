import { type Candidate, type Drop, toProposal } from "./candidate.ts";
import { thirdPersonPhrase } from "./commands.ts";
import { anyOf } from "./patterns.ts";
import { isClear, toPhrase } from "./phrases.ts";
import type { ProposalSource, SkillText } from "./proposal.ts";

const advice = /^(?:also )?(?:use|apply|invoke|trigger|read|load|helpful|useful)?/;
const skillItself = /(?:this|the|it|(?:this|the) skill)?/;
const condition = /(?:when(?:ever)?|if|for|to)/;
const person = /(?:the )?(?:user|someone|you|a developer|people|developers|users)/;
const wish = /(?:wants?|needs?|asks?|would like|mentions?)/;
/** How a description says when to use a skill, before it names the tasks: "Use this skill when the user wants to". */
const occasion = new RegExp(
  `${advice.source}\\s*${skillItself.source}\\s*${condition.source}\\s+(?:${person.source}\\s+${wish.source}\\s+(?:you\\s+)?)?(?:to\\s+)?`,
  "i",
);

/** The separators of the tasks in a sentence. */
const separator = anyOf(/[,;:]\s+(?:(?:or|and)\s+)?(?:to\s+)?/, /\s+(?:or|and)\s+(?:to\s+)?(?=[a-z]+\s)/);

/**
 * Candidates from the tasks that the description of a skill names. They show less than real tasks, because users don't know the words by which agents
 * decide.
 */
export function candidatesOfSkill(source: ProposalSource, drop: Drop): Candidate[] {
  const { skill } = source;
  if (skill === null) return [];
  const sentences = skill.description.split(/(?<=[.!?])\s+|\n+/);
  // A negative sentence names tasks for which the skill should not be used.
  const isNegative = (sentence: string) => /\b(not|never|don't|doesn't|instead of|except)\b/i.test(sentence);
  return sentences
    .filter((sentence) => !isNegative(sentence))
    .flatMap((sentence) =>
      clausesOf(sentence).flatMap((clause, index): Candidate[] => {
        // A capitalized word within a description is a name.
        const phrase = toPhrase(clause, () => true) ?? thirdPersonPhrase(clause);
        if (phrase === null || !isClear(phrase)) {
          drop(phrase === null ? "no_action" : "needs_page");
          return [];
        }
        const quote = sentence.trim().slice(0, 1000);
        const basis = { url: skill.page.url, line: lineOf(skill, clause), quote };
        const proposal = toProposal(phrase, source, { source: basis, why: "skill", text: sentence });
        // This keeps the order of the tasks in their sentence.
        const score = 3 - index / 1000;
        return [{ proposal, score }];
      }),
    );
}

/** The tasks of a sentence: "Use when the user wants to upload a file, list buckets, or delete objects." has three. */
const clausesOf = (sentence: string): string[] =>
  sentence
    .replace(occasion, "")
    .replace(/^[^,.:;]*?\b(?:for|when) (?=[a-z]+ing\b)/i, "")
    .split(new RegExp(separator))
    .map((clause) => clause.replace(/[.!?]+$/, "").trim())
    .filter((clause) => clause !== "");

/** The line of the file where a text begins. If the text is spread over several lines, the line of the description. */
function lineOf({ page }: SkillText, text: string): number {
  const lines = page.markdown.split("\n");
  const textIndex = lines.findIndex((line) => line.includes(text));
  const descriptionIndex = lines.findIndex((line) => line.startsWith("description:"));
  return textIndex >= 0 ? textIndex + 1 : Math.max(1, descriptionIndex + 1);
}
