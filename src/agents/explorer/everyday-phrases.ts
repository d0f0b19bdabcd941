import text from "./everyday-phrases.txt" with { type: "text" };

/**
 * What people say who don't know the terms of a tool, and the words that docs often use for it: `laptop` for `local`. A line of the file has
 * phrases before the colon and such words after it. Unlike synonyms, they only order the sections of a goal: a
 * phrase has many meanings.
 */
export const everydayPhrases: readonly { phrase: string; words: string }[] = text
  .trim()
  .split("\n")
  .flatMap((line) => {
    const [phrases, words] = line.split(": ") as [string, string];
    return phrases.split(", ").map((phrase) => ({ phrase, words }));
  });
