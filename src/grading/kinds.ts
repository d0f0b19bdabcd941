/** The closed lists of grading. */
export const severities = ["critical", "high", "medium", "low"] as const;
export const frictionStates = ["new", "open", "fixed", "regressed"] as const;
export const phases = ["discovery", "setup", "integration", "execution", "recovery"] as const;
export const frictionCategories = [
  "dead_link",
  "missing_docs",
  "misleading_docs",
  "unreadable_page",
  "broken_sample",
  "unclear_error",
  "silent_failure",
  "needs_human",
  "auth",
  "slow",
  "wrong_contract",
  "other",
] as const;

/**
 * What a score measures: a tested goal, an agent's work without a tested goal, or rule-based reading of the docs.
 * Scores of different scopes are never compared.
 */
export const scopes = ["goal", "conduct_only", "docs_only"] as const;

/**
 * How sure it is that a goal was reached or missed. `verified`: a success check or the product's own answer shows it. `observed`: the product's own
 * program said so. `judged`: only a judge says so.
 */
export const evidenceGrades = ["verified", "observed", "judged"] as const;

/** All parts of dimensions. */
export const partNames = [
  "Success checks",
  "Goal parts",
  "Path to the goal",
  "Failed page requests",
  "Site checks",
  "Pages",
  "Links",
  "Code samples",
  "Sample labels",
  "API description",
  "Recovery",
  "Wasted requests",
  "Wasted calls",
  "Response time",
  "Cost",
  "Interruptions",
] as const;

/** The unit of a part's value. `share` is 0 to 1. */
export const units = ["share", "pages", "seconds", "usd", "times"] as const;

/** What an event shows about a recommended fix. */
export const evidenceRoles = ["read", "failed", "guessed", "worked"] as const;

/** Checks of whether one page can be read. Their subject is its URL. */
export const readingChecks: ReadonlySet<string> = new Set([
  "page-readable",
  "link-resolves",
  "llms-entry-resolves",
  "sitemap-entry-resolves",
  "redirect-ends",
  "open-access",
  "challenge",
  "robots-allow",
  "page-answers",
  "answers-in-time",
  "has-text",
  "text-without-scripts",
  "missing-pages-say-so",
  "page-has-content",
  "content-type-readable",
]);
