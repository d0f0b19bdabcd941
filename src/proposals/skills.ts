import { type Candidate, type Drop, toProposal } from "./candidate.ts";
import { thirdPersonPhrase } from "./commands.ts";
import { isClear, toPhrase } from "./phrases.ts";
import type { ProposalSource, SkillText } from "./proposal.ts";

/** How descriptions say when a skill is used, before they name the tasks. */
const occasion =
  /^(?:also )?(?:use|apply|invoke|trigger|read|load|helpful|useful)?\s*(?:this|the|it|(?:this|the) skill)?\s*(?:when(?:ever)?|if|for|to)\s+(?:(?:the )?(?:user|someone|you|a developer|people|developers|users)\s+(?:wants?|needs?|asks?|would like|mentions?)\s+(?:you\s+)?)?(?:to\s+)?/i;
const joints = /[,;:]\s+(?:(?:or|and)\s+)?(?:to\s+)?|\s+(?:or|and)\s+(?:to\s+)?(?=[a-z]+\s)/;

/**
 * Candidates from the description of a skill: the tasks that it names, which are those for which agents should use it. They are in the words by
 * which agents decide, so they show less than tasks in the words of users.
 */
export function candidatesOfSkill(source: ProposalSource, drop: Drop): Candidate[] {
  const { skill } = source;
  if (skill === null) return [];
  const sentences = skill.description.split(/(?<=[.!?])\s+|\n+/);
  // Tasks for which it should not be used are no tasks of the skill.
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
        // Of the tasks of a sentence, the first comes first.
        return [{ proposal, score: 3 - index / 1000 }];
      }),
    );
}

/** The tasks of a sentence: "Use when the user wants to upload a file, list buckets, or delete objects." has three. */
const clausesOf = (sentence: string): string[] =>
  sentence
    .replace(occasion, "")
    .replace(/^[^,.:;]*?\b(?:for|when) (?=[a-z]+ing\b)/i, "")
    .split(joints)
    .map((clause) => clause.replace(/[.!?]+$/, "").trim())
    .filter((clause) => clause !== "");

/** The line of the file where a text begins; that of the description if it is not written in one piece. */
function lineOf({ page }: SkillText, text: string): number {
  const lines = page.markdown.split("\n");
  const textIndex = lines.findIndex((line) => line.includes(text));
  const descriptionIndex = lines.findIndex((line) => line.startsWith("description:"));
  return textIndex >= 0 ? textIndex + 1 : Math.max(1, descriptionIndex + 1);
}
