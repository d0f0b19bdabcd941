import type { CheckGroup } from "../../agents/agent.ts";
import type { SeenCheck } from "../facts.ts";
import type { Friction } from "../grade.ts";

/** Conventions of a site that help agents, but whose absence blocks none. Together they are one low-severity finding per site. */
export const hygiene: ReadonlyMap<string, string> = new Map([
  ["llms-txt-exists", "no llms.txt"],
  ["llms-txt-valid", "llms.txt has an invalid format"],
  ["llms-txt-size", "llms.txt is too long for one read"],
  ["llms-txt-links-markdown", "llms.txt links to HTML instead of Markdown"],
  ["llms-txt-coverage", "llms.txt omits pages"],
  ["llms-txt-directive", "pages do not point to llms.txt"],
  ["llms-txt-directive-html", "HTML pages do not point to llms.txt"],
  ["llms-txt-directive-md", "Markdown pages do not point to llms.txt"],
  ["markdown-url-support", "no Markdown version at .md"],
  ["content-negotiation", "“Accept: text/markdown” does not return Markdown"],
  ["markdown-content-parity", "Markdown and HTML differ"],
  ["markdown-link-portability", "relative links in Markdown"],
  ["page-size-markdown", "long Markdown pages"],
  ["page-size-html", "long HTML pages"],
  ["page-size-transfer", "heavy pages"],
  ["content-start-position", "content starts late in the page"],
  ["tabbed-content-serialization", "tabs make pages long"],
  ["section-header-quality", "headings in tabs do not name their variant"],
  ["single-fetch-completeness", "one request does not return the whole page"],
  ["embedded-data-serialization", "embedded data in pages"],
  ["redirect-behavior", "redirects that agents may not follow"],
  ["cache-header-hygiene", "unsuitable cache headers"],
  ["sample-labelled", "code samples without a language"],
]);

/** What a failed check means for an agent: the kind of friction, its maximum severity, its title and its fix. */
export type Entry = {
  category: Friction["category"];
  phase: Friction["phase"];
  severity: Friction["severity"];
  title: string;
  remedy: string;
};

const entry = (
  category: Entry["category"],
  phase: Entry["phase"],
  severity: Entry["severity"],
  title: string,
  remedy: string,
): Entry => ({ category, phase, severity, title, remedy });

/** `critical` requires that the check fails almost everywhere, so that agents can't read anything. */
const entries: Record<string, Entry> = {
  "llms-txt-links-resolve": entry(
    "dead_link",
    "discovery",
    "medium",
    "llms.txt lists dead links",
    "Fix the dead entries in llms.txt",
  ),
  "llms-entry-resolves": entry(
    "dead_link",
    "discovery",
    "high",
    "Dead entry in llms.txt",
    "Fix the dead entries in llms.txt",
  ),
  "sitemap-entry-resolves": entry(
    "dead_link",
    "discovery",
    "medium",
    "Dead entry in the sitemap",
    "Fix the dead entries in the sitemap",
  ),
  "rendering-strategy": entry(
    "unreadable_page",
    "discovery",
    "critical",
    "Text appears only with JavaScript",
    "Include the text in the HTML that the server sends",
  ),
  "text-without-scripts": entry(
    "unreadable_page",
    "discovery",
    "high",
    "Page is empty without JavaScript",
    "Include the text in the HTML that the server sends",
  ),
  "has-text": entry("unreadable_page", "discovery", "high", "Empty page", "Restore the content of the page"),
  "long-page-has-headings": entry(
    "unreadable_page",
    "discovery",
    "low",
    "Long page without headings",
    "Add headings to long pages",
  ),
  "nesting-depth": entry(
    "unreadable_page",
    "discovery",
    "medium",
    "Too many nested elements",
    "Close every element, and put fewer elements inside each other",
  ),
  "markdown-code-fence-validity": entry(
    "broken_sample",
    "integration",
    "medium",
    "Code fence is not closed",
    "Close the code fences",
  ),
  "http-status-codes": entry(
    "silent_failure",
    "discovery",
    "medium",
    "Missing pages return a success status",
    "Return 404 for missing pages",
  ),
  "missing-pages-say-so": entry("silent_failure", "discovery", "high", "Soft 404", "Restore the page or return 404"),
  "auth-gate-detection": entry(
    "auth",
    "setup",
    "critical",
    "Docs require sign-in",
    "Make the docs readable without signing in",
  ),
  "open-access": entry("auth", "setup", "high", "Page requires sign-in", "Make the docs readable without signing in"),
  "auth-alternative-access": entry(
    "auth",
    "setup",
    "medium",
    "No alternative for agents to signing in",
    "Offer the docs in a way that needs no sign-in",
  ),
  "bot-protection-interference": entry(
    "auth",
    "discovery",
    "critical",
    "Bot protection blocks agents",
    "Let agents through the bot protection",
  ),
  "link-resolves": entry("dead_link", "discovery", "medium", "Dead link", "Fix broken links"),
  "anchor-resolves": entry("dead_link", "discovery", "low", "Link to a missing section", "Fix broken links"),
  "redirect-ends": entry("dead_link", "discovery", "high", "Redirect loop", "Fix the redirect loop"),
  "answers-in-time": entry("slow", "discovery", "medium", "Slow page", "Make the page faster"),
  "page-answers": entry("other", "discovery", "high", "Server error", "Fix the server error"),
  "prerequisite-explained": entry(
    "missing_docs",
    "setup",
    "high",
    "Missing prerequisite",
    "Explain the prerequisite and link it",
  ),
  "sample-parses": entry(
    "broken_sample",
    "integration",
    "medium",
    "Code sample does not parse",
    "Fix the code samples",
  ),
  "sample-matches-api": entry(
    "wrong_contract",
    "integration",
    "high",
    "Sample contradicts the API description",
    "Make the samples match the API description",
  ),
  "openapi-valid": entry(
    "wrong_contract",
    "integration",
    "high",
    "API description is not valid",
    "Fix the API description",
  ),
  "page-readable": entry("unreadable_page", "discovery", "critical", "Page cannot be read", "Make the page readable"),
};

const byGroup: Record<CheckGroup, Omit<Entry, "title" | "remedy">> = {
  discovery: { category: "missing_docs", phase: "discovery", severity: "medium" },
  page: { category: "unreadable_page", phase: "integration", severity: "medium" },
  link: { category: "dead_link", phase: "discovery", severity: "medium" },
  sample: { category: "broken_sample", phase: "integration", severity: "medium" },
  contract: { category: "wrong_contract", phase: "integration", severity: "high" },
  declared: { category: "wrong_contract", phase: "execution", severity: "high" },
};

export function entryOf(check: Pick<SeenCheck, "id" | "group">): Entry {
  const entry = Object.hasOwn(entries, check.id) ? entries[check.id] : undefined;
  if (entry !== undefined) return entry;
  const kind = byGroup[check.group] ?? { category: "other", phase: "execution", severity: "low" };
  const title = check.group === "declared" ? "Success check failed" : `Check failed: ${check.id}`;
  const remedy = check.group === "declared" ? "Make the success check pass" : `Fix ${check.id}`;
  return { ...kind, title, remedy };
}

const milder = { critical: "high", high: "medium", medium: "low", low: "low" } as const;

/**
 * Lower for a warning, for a failure of at most a quarter of the tested items, and for a page on which the answer
 * doesn't depend. `everywhere` is the share that passed over all checks of this ID: a problem that is everywhere blocks
 * agents.
 */
export function severityOf(check: SeenCheck, { severity }: Entry, everywhere: number): Friction["severity"] {
  const serious = severity === "critical" || severity === "high";
  const own =
    check.status === "warn" || check.share >= 0.75
      ? serious
        ? "medium"
        : "low"
      : severity === "critical" && everywhere > 0.25
        ? "high"
        : severity;
  return check.elsewhere ? milder[own] : own;
}
