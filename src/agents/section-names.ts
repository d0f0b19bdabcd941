import { decodePercent } from "../net/percent.ts";

/** The letters and digits of a text. Builders make IDs from headings in different ways, but all of them keep the letters and digits in order. */
const lettersOf = (text: string): string =>
  text
    .normalize("NFKD")
    .replace(/[^\p{L}\p{N}]/gu, "")
    .toLowerCase();

/** Whether a name may be made from the text of a heading. If several headings have the same text, builders number all but the first. */
export function isMadeFrom(name: string, heading: string): boolean {
  const [letters, text] = [lettersOf(name), lettersOf(heading)];
  return text !== "" && letters.startsWith(text) && /^\d{0,2}$/.test(letters.slice(text.length));
}

/** Whether some IDs of a page are made from its headings. */
export const areMadeFromHeadings = (ids: ReadonlySet<string>, headings: { text: string }[]): boolean => {
  const letters = new Set([...ids].map(lettersOf));
  return headings.some(({ text }) => text !== "" && letters.has(lettersOf(text)));
};

/** Whether a fragment may name a heading of a Markdown page, or is an ID in it. */
export function namesSection(
  { headings, markdown }: { headings: { text: string }[]; markdown: string },
  fragment: string,
): boolean {
  const name = decodePercent(fragment) ?? fragment;
  // `{#name}`, `{: #name}`, `<a id="name">` and `[[name]]`, but not `(#name)`, which is a link.
  const ownId = new RegExp(`(?:\\{[^}\\n]*#|\\b(?:id|name)=["']?|\\[\\[)${RegExp.escape(name)}(?=["'}\\s>\\]])`, "i");
  return headings.some(({ text }) => isMadeFrom(name, text)) || ownId.test(markdown);
}
