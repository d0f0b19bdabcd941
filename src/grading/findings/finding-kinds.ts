import type { Friction } from "../grade.ts";
import { frictionByCheck } from "./catalogue.ts";

/** A kind of finding that the explorer can report. Its findings have titles that start with `title`. */
type FindingKind = {
  id: string;
  title: string;
  /** The highest severity of its findings. */
  severity: Friction["severity"];
  /** What must be wrong, as the documentation says it. */
  meaning: string;
};

/** Findings that no check reports: about the answer to the goal, and about requests that failed on the way to it. */
export const pathKinds = {
  unclearAnswer: {
    id: "unclear-answer",
    title: "No page clearly answers the goal",
    severity: "low",
    meaning: "no section matches the goal well",
  },
  farAnswer: {
    id: "far-answer",
    title: "The likely answer is far from the start page",
    severity: "medium",
    meaning: "the likely answer is more than 4 clicks away",
  },
  unlinkedAnswer: {
    id: "unlinked-answer",
    title: "No link leads from the start page to the likely answer",
    severity: "low",
    meaning: "only a sitemap leads to the likely answer",
  },
  nothingRead: {
    id: "nothing-read",
    title: "No page could be read at the start URLs",
    severity: "critical",
    meaning: "the start URLs have no page",
  },
  refused: {
    id: "refused",
    title: "Access refused",
    severity: "critical",
    meaning: "status 401, 402, 403 or 407 on the way to the answer",
  },
  rateLimit: {
    id: "rate-limit",
    title: "Too many requests",
    severity: "critical",
    meaning: "status 429 on the way to the answer",
  },
  timeout: {
    id: "timeout",
    title: "Request timed out",
    severity: "critical",
    meaning: "no response within 15 seconds on the way to the answer",
  },
} as const satisfies Record<string, FindingKind>;

export const conventionsKind: FindingKind = {
  id: "conventions",
  title: "Site conventions for agents",
  severity: "low",
  meaning: "the site lacks conventions that help agents",
};

/** All kinds of findings about docs that the explorer can report. Success checks and limits of the run aren't among them. */
export const findingKinds: FindingKind[] = [
  ...[...frictionByCheck].map(([id, { title, severity, meaning }]) => ({ id, title, severity, meaning })),
  ...Object.values(pathKinds),
  conventionsKind,
];
