import { createHash } from "node:crypto";
import { pageKey } from "../../net/page-key.ts";
import type { Facts } from "../facts.ts";
import type { Friction, TextChange } from "../grade.ts";
import { severityRank } from "../methodology.ts";
import { shortUrl } from "../text.ts";

/** What would have had to succeed to avoid a finding, by key or sequence number. */
export type Cause = {
  checks: string[];
  requests: number[];
  failures: number[];
  interruptions: number[];
  goal: boolean;
};

/** A friction point before its cost is known, with data for the recommended fix. */
export type Finding = Omit<Friction, "lostSeconds" | "lostUsd" | "lostPoints"> & {
  cause: Cause;
  foundBy: "rules" | "agent" | "judge";
  /** Findings with the same `key` share one fix. */
  remedy: { key: string; title: string; kind: "links" | "labels" | "samples" | "check" | "conventions" | "other" };
  /** Its name among others of its kind: "/guide/instal (404)", "line 12". */
  place: string;
  /** What could have prevented it: the recommended fixes, the agent, or neither, because the network failed. */
  owner: "fixes" | "agent" | "network";
  /** Where to change what, as far as events show it. */
  evidence: TextChange | null;
  fix: string | null;
  /** It says that something is missing in all that was read. A page that wasn't read or understood may have it. */
  isInferred?: boolean;
};

/** A finding as stated by its rule. Findings of one category with the same `subject` are merged. */
export type FindingDraft = Pick<
  Finding,
  "severity" | "phase" | "category" | "title" | "description" | "url" | "preconditions"
> &
  Partial<Pick<Finding, "cause" | "place" | "fix" | "quote" | "owner" | "evidence" | "isInferred">> & {
    subject: string;
    events: number[];
    remedy: { key: string; title: string; kind?: "links" | "other" };
  };

/** The cause of a finding that no check or request of the session could have avoided. */
export const noCause: Cause = { checks: [], requests: [], failures: [], interruptions: [], goal: false };

/** What would have had to succeed to avoid both of two findings. */
export function joinCauses(a: Cause, b: Cause): Cause {
  return {
    checks: [...a.checks, ...b.checks],
    requests: [...a.requests, ...b.requests],
    failures: [...a.failures, ...b.failures],
    interruptions: [...a.interruptions, ...b.interruptions],
    goal: a.goal || b.goal,
  };
}

/** Orders texts by their characters, the same in every locale. */
export const textOrder = (a: string, b: string): number => Number(a > b) - Number(a < b);

/** The values without duplicates, sorted. */
export const sortedUnique = (seqs: number[]) => [...new Set(seqs)].sort((a, b) => a - b);

/** Identifies the same problem in all sessions: 16 hexadecimal digits. `subject`: what has the problem, such as the URL of a page. */
export function fingerprint(category: Friction["category"], subject: string): string {
  return createHash("sha256").update(`${category}\n${subject}`).digest("hex").slice(0, 16);
}

/** The most severe of one or more severities. */
export function worstSeverity(severities: Friction["severity"][]): Friction["severity"] {
  return severities.reduce((a, b) => (severityRank[a] <= severityRank[b] ? a : b));
}

/** The title of a page that was read, or else its path. */
export function pageName(facts: Facts, url: string): string {
  const key = pageKey(url);
  return (
    [...facts.pages, ...facts.surveyedPages].find((page) => pageKey(page.url) === key)?.title ??
    shortUrl(url, facts.startUrls[0] ?? url)
  );
}
