import type { CheckGroup } from "../../agents/agent.ts";
import type { CheckResult } from "../facts.ts";
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
export type CheckFriction = {
  category: Friction["category"];
  phase: Friction["phase"];
  severity: Friction["severity"];
  title: string;
  remedy: string;
};

type CheckFrictionRow = [severity: CheckFriction["severity"], title: string, remedy: string];

const toEntries = (
  category: CheckFriction["category"],
  phase: CheckFriction["phase"],
  rows: Record<string, CheckFrictionRow>,
): [string, CheckFriction][] =>
  Object.entries(rows).map(([id, [severity, title, remedy]]) => [id, { category, phase, severity, title, remedy }]);

/** `critical` requires that the check fails almost everywhere, so that agents can't read anything. */
const frictionByCheck: ReadonlyMap<string, CheckFriction> = new Map([
  ...toEntries("dead_link", "discovery", {
    "llms-txt-links-resolve": ["medium", "llms.txt lists dead links", "Fix the dead entries in llms.txt"],
    "llms-entry-resolves": ["high", "Dead entry in llms.txt", "Fix the dead entries in llms.txt"],
    "sitemap-entry-resolves": ["medium", "Dead entry in the sitemap", "Fix the dead entries in the sitemap"],
    "link-resolves": ["medium", "Dead link", "Fix broken links"],
    "anchor-resolves": ["low", "Link to a missing section", "Fix broken links"],
    "redirect-ends": ["high", "Redirect loop", "Fix the redirect loop"],
  }),
  ...toEntries("unreadable_page", "discovery", {
    "rendering-strategy": [
      "critical",
      "Text appears only with JavaScript",
      "Include the text in the HTML that the server sends",
    ],
    "text-without-scripts": [
      "high",
      "Page is empty without JavaScript",
      "Include the text in the HTML that the server sends",
    ],
    "has-text": ["high", "Empty page", "Restore the content of the page"],
    "long-page-has-headings": ["low", "Long page without headings", "Add headings to long pages"],
    "nesting-depth": [
      "medium",
      "Too many nested elements",
      "Close every element, and put fewer elements inside each other",
    ],
    "page-readable": ["critical", "Page cannot be read", "Make the page readable"],
  }),
  ...toEntries("broken_sample", "integration", {
    "markdown-code-fence-validity": ["medium", "Code fence is not closed", "Close the code fences"],
    "sample-parses": ["medium", "Code sample does not parse", "Fix the code samples"],
  }),
  ...toEntries("silent_failure", "discovery", {
    "http-status-codes": ["medium", "Missing pages return a success status", "Return 404 for missing pages"],
    "missing-pages-say-so": ["high", "Soft 404", "Restore the page or return 404"],
  }),
  ...toEntries("auth", "setup", {
    "auth-gate-detection": ["critical", "Docs require sign-in", "Make the docs readable without signing in"],
    "open-access": ["high", "Page requires sign-in", "Make the docs readable without signing in"],
    "auth-alternative-access": [
      "medium",
      "No alternative for agents to signing in",
      "Offer the docs in a way that needs no sign-in",
    ],
  }),
  ...toEntries("auth", "discovery", {
    "bot-protection-interference": [
      "critical",
      "Bot protection blocks agents",
      "Let agents through the bot protection",
    ],
  }),
  ...toEntries("slow", "discovery", {
    "answers-in-time": ["medium", "Slow page", "Make the page faster"],
  }),
  ...toEntries("other", "discovery", {
    "page-answers": ["high", "Server error", "Fix the server error"],
  }),
  ...toEntries("missing_docs", "setup", {
    "prerequisite-explained": ["high", "Missing prerequisite", "Explain the prerequisite and link it"],
  }),
  ...toEntries("wrong_contract", "integration", {
    "sample-matches-api": [
      "high",
      "Sample contradicts the API description",
      "Make the samples match the API description",
    ],
    "openapi-valid": ["high", "API description is not valid", "Fix the API description"],
  }),
]);

const defaultsByGroup: Record<CheckGroup, Omit<CheckFriction, "title" | "remedy">> = {
  discovery: { category: "missing_docs", phase: "discovery", severity: "medium" },
  page: { category: "unreadable_page", phase: "integration", severity: "medium" },
  link: { category: "dead_link", phase: "discovery", severity: "medium" },
  sample: { category: "broken_sample", phase: "integration", severity: "medium" },
  contract: { category: "wrong_contract", phase: "integration", severity: "high" },
  declared: { category: "wrong_contract", phase: "execution", severity: "high" },
};

export function checkFrictionOf(check: { id: string; group: CheckGroup }): CheckFriction {
  const entry = frictionByCheck.get(check.id);
  if (entry !== undefined) return entry;
  const kind = defaultsByGroup[check.group] ?? { category: "other", phase: "execution", severity: "low" };
  const title = check.group === "declared" ? "Success check failed" : `Check failed: ${check.id}`;
  const remedy = check.group === "declared" ? "Make the success check pass" : `Fix ${check.id}`;
  return { ...kind, title, remedy };
}

const oneStepMilder = { critical: "high", high: "medium", medium: "low", low: "low" } as const;

/**
 * Lower for a warning, for a failure of at most a quarter of the tested items, and for a page on which the answer
 * doesn't depend. `passedShare` is the share that passed over all checks of this ID: a problem that is everywhere blocks
 * agents.
 */
export function severityOf(check: CheckResult, { severity }: CheckFriction, passedShare: number): Friction["severity"] {
  const isSerious = severity === "critical" || severity === "high";
  const reduced =
    check.status === "warn" || check.share >= 0.75
      ? isSerious
        ? "medium"
        : "low"
      : severity === "critical" && passedShare > 0.25
        ? "high"
        : severity;
  return check.isOnUnrelatedPage ? oneStepMilder[reduced] : reduced;
}
