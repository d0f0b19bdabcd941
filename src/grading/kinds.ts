/** The closed lists of what grading says. */
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

/** What a score is of: a goal that was tested, an agent's work whose goal was not, or a reading of the docs by rules. Scores of two scopes never compare. */
export const scopes = ["goal", "conduct_only", "docs_only"] as const;

/** Everything that a dimension can be made of. */
export const partNames = [
  "Declared checks",
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

/** What the value of a part counts in. `share` is 0 to 1. */
export const units = ["share", "pages", "seconds", "usd", "times"] as const;
