/** The closed lists in which friction is told. */
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
