/** Checks of whether one page can be read. Their subject is its URL. */
export const readingChecks: ReadonlySet<string> = new Set([
  "page-readable",
  "link-resolves",
  "llms-entry-resolves",
  "sitemap-entry-resolves",
  "redirect-ends",
  "open-access",
  "page-answers",
  "answers-in-time",
  "has-text",
  "text-without-scripts",
  "missing-pages-say-so",
]);
