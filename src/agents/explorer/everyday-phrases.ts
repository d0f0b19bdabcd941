import text from "./everyday-phrases.txt" with { type: "text" };

/**
 * Phrases of people who don't know the terms of a tool, with the words that docs often use instead, such as `local` for `laptop`. A line of the file
 * has phrases before the colon and these words after it. Unlike synonyms, they only affect the order of a goal's sections, because a phrase has many
 * meanings.
 */
export const everydayPhrases: readonly { phrase: string; words: string }[] = text
  .trim()
  .split("\n")
  .flatMap((line) => {
    const [phrases, words] = line.split(": ") as [string, string];
    return phrases.split(", ").map((phrase) => ({ phrase, words }));
  });
