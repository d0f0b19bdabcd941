import { pageKey } from "../net/page-key.ts";
import type { Page } from "./page.ts";

/** The text of a page that a task rests on. */
export type Basis = { url: string; quote: string };

/**
 * A field for the milestone of a page that was read: whether the page still has the text that the task rests on. Empty if the task rests on another
 * page, or on none. The title is searched too, because a title in front matter isn't in the Markdown.
 */
export function basisIn(basis: Basis | undefined, { url, title, markdown }: Page): { basis?: "kept" | "changed" } {
  if (basis === undefined || pageKey(basis.url) !== pageKey(url)) return {};
  return { basis: toWords(`${title}\n${markdown}`).includes(toWords(basis.quote)) ? "kept" : "changed" };
}

/** The words of a text, each with a space before and after it, so that HTML and Markdown of the same page are equal. */
function toWords(text: string): string {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return ` ${words.join(" ")} `;
}
