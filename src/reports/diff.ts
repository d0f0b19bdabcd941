import { indexOfName } from "../grading/text.ts";
import type { Recommendation } from "./schema.ts";

/** The line of a page before and after a fix; null if the evidence doesn't hold both. */
export function diffOf(evidence: Recommendation["evidence"]): { before: string; after: string } | null {
  const { text, found, expected } = evidence ?? {};
  if (!text || !found || !expected) return null;
  const at = indexOfName(text, found);
  return at < 0 ? null : { before: text, after: text.slice(0, at) + expected + text.slice(at + found.length) };
}

/** The name of a page for a person: the last segment of its path, or its host. */
export function fileOf(url: string): string {
  const parsed = URL.parse(url);
  return parsed?.pathname.split("/").filter(Boolean).at(-1) ?? parsed?.host ?? url;
}
