import { type Term, toWords } from "./goal.ts";
import type { ReadPage } from "./session.ts";

const japaneseScripts = "[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}]";
/** Scripts that one language uses together count as one. Letters of other scripts are ignored. */
const scripts =
  "Latin Cyrillic Han Hangul Arabic Hebrew Greek Devanagari Bengali Tamil Telugu Thai Khmer Lao Myanmar Georgian Armenian Ethiopic"
    .split(" ")
    .map((name) => ({ name, letter: new RegExp(name === "Han" ? japaneseScripts : `\\p{Script=${name}}`, "u") }));

/** Characters of each page used to determine its script. */
const sampleChars = 4000;

const scriptOf = (word: string) => scripts.find(({ letter }) => letter.test(word))?.name ?? null;

function mostCommonScript(words: Iterable<string>): string | null {
  const counts = new Map<string, number>();
  for (const script of Iterator.from(words).map(scriptOf))
    if (script !== null) counts.set(script, (counts.get(script) ?? 0) + 1);
  return (
    [...counts].reduce<[string, number] | null>(
      (best, each) => (best && best[1] >= each[1] ? best : each),
      null,
    )?.[0] ?? null
  );
}

/** The scripts of the goal and of the docs. */
type OtherScript = { goal: string; docs: string };

/**
 * The scripts of the goal and of the docs if they differ, so that words can't be compared: more than half of the goal's terms are in another script
 * than the docs, and occur nowhere in them. Otherwise null, and also if nothing was read.
 */
export function findOtherScript(terms: Term[], unseen: ReadonlySet<string>, pages: ReadPage[]): OtherScript | null {
  const prose = pages.map(({ markdown }) => markdown.replace(/```[\s\S]*?```|`[^`\n]+`|https?:\/\/\S+/g, " "));
  const docs = mostCommonScript(prose.flatMap((text) => toWords(text.slice(0, sampleChars))));
  if (docs === null) return null;
  const foreign = terms.flatMap(({ word }) => {
    const script = unseen.has(word) ? scriptOf(word) : null;
    return script === null || script === docs ? [] : [word];
  });
  return foreign.length > terms.length / 2 ? { goal: mostCommonScript(foreign)!, docs } : null;
}
