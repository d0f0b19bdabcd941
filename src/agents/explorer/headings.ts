import type { Check } from "../agent.ts";
import { type ReadPage, type Session, type Steps, useTool } from "./session.ts";

/** Pages with at least this much prose need headings, in characters. */
const longProse = 3000;

/** Checks that long pages have headings besides their title. */
export async function* checkHeadings(session: Session, pages: ReadPage[]): Steps {
  const long = pages.filter((page) => page.problem === null && proseOf(page).length >= longProse);
  if (long.length === 0) return;
  yield* useTool(session, "check_headings", { pages: long.length }, async () => {
    const checks = long.map(toCheck);
    const without = checks.filter(({ status }) => status === "warn").length;
    return { ok: true, output: { pages: long.length, without }, checks, value: undefined };
  });
}

/** The text of a page without code, tables and link URLs. */
const proseOf = ({ markdown }: ReadPage) =>
  markdown
    .replace(/^\s*(`{3,}|~{3,})[\s\S]*?^\s*\1/gm, "")
    .replace(/^\s*\|.*$/gm, "")
    .replace(/\]\([^)]*\)/g, "]");

function toCheck({ url, title, headings }: ReadPage): Check {
  const own = headings.filter(({ text, level }) => text !== title && level <= 6);
  const base = { id: "long-page-has-headings", group: "page" as const, subject: url, url, line: null, quote: null };
  if (own.length > 0)
    return { ...base, status: "pass", share: 1, weight: 1, message: "The page has headings", fix: null };
  return {
    ...base,
    status: "warn",
    share: 0,
    weight: 3,
    message: "The page is long and has no headings",
    fix: "Add headings that describe each part of the page.",
  };
}
