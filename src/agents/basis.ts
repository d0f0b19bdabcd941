import { pageKey } from "../net/page-key.ts";
import type { Page } from "./page.ts";

/** The text of a page that a task rests on. */
export type Basis = { url: string; quote: string };

/**
 * For the milestone of a page that was read: whether it still has the text that the task rests on; empty if it rests on another page, or on none.
 * A title in front matter isn't in the Markdown.
 */
export const basisIn = (basis: Basis | undefined, { url, title, markdown }: Page): { basis?: "kept" | "changed" } =>
  basis === undefined || pageKey(basis.url) !== pageKey(url)
    ? {}
    : { basis: toWords(`${title}\n${markdown}`).includes(toWords(basis.quote)) ? "kept" : "changed" };

/** The words of a text, so that HTML and Markdown of the same page are equal. */
const toWords = (text: string): string =>
  ` ${
    text
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu)
      ?.join(" ") ?? ""
  } `;
