import { createHash } from "node:crypto";
import type { Facts } from "./facts.ts";
import { severityRank } from "./methodology.ts";
import type { Friction } from "./score.ts";
import { samePage, shortAddress } from "./words.ts";

/** What would have to have gone well for a finding not to be, by key or sequence number. */
export type Cause = {
  checks: string[];
  requests: number[];
  failures: number[];
  interruptions: number[];
  goal: boolean;
};

/** A friction before its costs are known, with what the advice needs to know of it. */
export type Finding = Omit<Friction, "lostSeconds" | "lostUsd" | "lostPoints"> & {
  cause: Cause;
  /** Findings with one `key` are mended by one change. */
  remedy: { key: string; title: string; kind: "links" | "labels" | "samples" | "check" | "way" };
  /** What to call it among others of its kind: "/guide/instal (404)", "line 12". */
  place: string;
  fix: string | null;
};

export const noCause: Cause = { checks: [], requests: [], failures: [], interruptions: [], goal: false };

export function joinCauses(a: Cause, b: Cause): Cause {
  return {
    checks: [...a.checks, ...b.checks],
    requests: [...a.requests, ...b.requests],
    failures: [...a.failures, ...b.failures],
    interruptions: [...a.interruptions, ...b.interruptions],
    goal: a.goal || b.goal,
  };
}

export const inOrder = (seqs: number[]) => [...new Set(seqs)].sort((a, b) => a - b);

export function fingerprint(category: Friction["category"], subject: string): string {
  return createHash("sha256").update(`${category}\n${subject}`).digest("hex").slice(0, 16);
}

export function worst(severities: Friction["severity"][]): Friction["severity"] {
  return severities.reduce((a, b) => (severityRank[a] <= severityRank[b] ? a : b));
}

/** The title of a page that was read, the path of any other. */
export function pageName(facts: Facts, url: string): string {
  const wanted = samePage(url);
  return facts.pages.find((page) => samePage(page.url) === wanted)?.title ?? shortAddress(url, facts.starts[0] ?? url);
}
