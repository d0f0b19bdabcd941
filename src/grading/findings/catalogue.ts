import type { CheckGroup } from "../../agents/agent.ts";
import type { CheckResult } from "../facts.ts";
import type { Friction } from "../grade.ts";

/** Conventions of a site that help agents, but whose absence blocks none. Together they are one low-severity finding per site. */
export const conventions: ReadonlyMap<string, string> = new Map([
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

type CheckFrictionRow = [severity: CheckFriction["severity"], title: string, remedy: string, meaning: string];

/** `meaning`: what must be wrong, as the documentation says it. */
type Entry = CheckFriction & { meaning: string };

const toEntries = (
  category: CheckFriction["category"],
  phase: CheckFriction["phase"],
  rows: Record<string, CheckFrictionRow>,
): [string, Entry][] =>
  Object.entries(rows).map(([id, [severity, title, remedy, meaning]]) => [
    id,
    { category, phase, severity, title, remedy, meaning },
  ]);

/** `critical` requires that the check fails almost everywhere, so that agents can't read anything. */
export const frictionByCheck: ReadonlyMap<string, Entry> = new Map([
  ...toEntries("dead_link", "discovery", {
    "llms-txt-links-resolve": [
      "medium",
      "llms.txt lists dead links",
      "Fix the dead entries in llms.txt",
      "entries of `llms.txt` that don't respond",
    ],
    "llms-entry-resolves": [
      "high",
      "Dead entry in llms.txt",
      "Fix the dead entries in llms.txt",
      "an entry of `llms.txt` that leads to no page",
    ],
    "sitemap-entry-resolves": [
      "medium",
      "Dead entry in the sitemap",
      "Fix the dead entries in the sitemap",
      "an entry of a sitemap that leads to no page",
    ],
    "link-resolves": [
      "medium",
      "Dead link",
      "Fix broken links",
      "a link to a page that doesn't exist, or to a host of the docs that doesn't respond",
    ],
    "anchor-resolves": [
      "low",
      "Link to a missing section",
      "Fix broken links",
      "a link to a section that the page doesn't have",
    ],
    "redirect-ends": ["high", "Redirect loop", "Fix the redirect loop", "redirects that never end"],
  }),
  ...toEntries("unreadable_page", "discovery", {
    "rendering-strategy": [
      "critical",
      "Text appears only with JavaScript",
      "Include the text in the HTML that the server sends",
      "pages of the site whose HTML has no text",
    ],
    "text-without-scripts": [
      "high",
      "Page is empty without JavaScript",
      "Include the text in the HTML that the server sends",
      "a page whose HTML has no content until its scripts run",
    ],
    "has-text": ["high", "Empty page", "Restore the content of the page", "a page without text"],
    "long-page-has-headings": [
      "low",
      "Long page without headings",
      "Add headings to long pages",
      "a page with much text and no headings in it",
    ],
    "nesting-depth": [
      "medium",
      "Too many nested elements",
      "Close every element, and put fewer elements inside each other",
      "a page with so many elements inside each other that programs may fail to read it",
    ],
    "charset-matches": [
      "high",
      "Garbled text",
      "Send the page in the encoding that it declares",
      "a page in another encoding than it declares",
    ],
    "content-type-matches": [
      "medium",
      "Page with a wrong content type",
      "Set the content type of the page",
      "HTML with another content type",
    ],
    "text-instead-of-pictures": [
      "high",
      "Pictures instead of text",
      "Write the instructions as text",
      "a page with pictures and hardly a text about them, or a picture where the answer should be",
    ],
    "tabs-have-content": [
      "medium",
      "Tabs are empty without JavaScript",
      "Include the content of all tabs in the HTML",
      "tabs that only scripts fill",
    ],
    "redirects-by-status": [
      "low",
      "Redirect that only browsers follow",
      "Redirect with a status",
      "a redirect by HTML or JavaScript",
    ],
    "content-type-readable": [
      "high",
      "Page of an unreadable content type",
      "Set the content type of the page",
      "HTML, Markdown by its name, or any page that the answer depends on, that is no document by its content type",
    ],
    "page-size": [
      "high",
      "Page is too large to read",
      "Divide large pages",
      "a page larger than 5 MiB, or one that the answer depends on with more than 500,000 characters",
    ],
    "page-readable": [
      "critical",
      "Page cannot be read",
      "Make the page readable",
      "a page that can't be read for another reason",
    ],
  }),
  ...toEntries("broken_sample", "integration", {
    "markdown-code-fence-validity": [
      "medium",
      "Code fence is not closed",
      "Close the code fences",
      "a code fence in Markdown that is never closed",
    ],
    "sample-parses": [
      "medium",
      "Code sample does not parse",
      "Fix the code samples",
      "a sample that isn't valid in its language",
    ],
    "command-copyable": [
      "low",
      "Command with a prompt",
      "Remove the prompts from commands",
      "on the page with the answer, commands with a prompt if most commands of the docs have none",
    ],
  }),
  ...toEntries("silent_failure", "discovery", {
    "http-status-codes": [
      "medium",
      "Missing pages return a success status",
      "Return 404 for missing pages",
      "a URL that doesn't exist and returns a success status",
    ],
    "missing-pages-say-so": [
      "high",
      "Soft 404",
      "Restore the page or return 404",
      "an error page with a success status, or a page that the answer depends on, with a sentence or two about something else",
    ],
  }),
  ...toEntries("auth", "setup", {
    "auth-gate-detection": [
      "critical",
      "Docs require sign-in",
      "Make the docs readable without signing in",
      "a site whose pages require sign-in",
    ],
    "open-access": [
      "high",
      "Page requires sign-in",
      "Make the docs readable without signing in",
      "status 401, 402, 403 or 407, or a sign-in form in place of the page",
    ],
    challenge: [
      "high",
      "Bot protection in front of a page",
      "Let agents through the bot protection",
      "a test of the browser in place of a page",
    ],
    "auth-alternative-access": [
      "medium",
      "No alternative for agents to signing in",
      "Offer the docs in a way that needs no sign-in",
      "docs behind a sign-in without another way to read them",
    ],
  }),
  ...toEntries("auth", "discovery", {
    "robots-allow": [
      "medium",
      "robots.txt blocks agents from a page",
      "Allow agents to read the docs in robots.txt",
      "a page that the answer depends on and that `robots.txt` forbids",
    ],
    "bot-protection-interference": [
      "critical",
      "Bot protection blocks agents",
      "Let agents through the bot protection",
      "a host that refuses requests of programs",
    ],
  }),
  ...toEntries("slow", "discovery", {
    "answers-in-time": [
      "medium",
      "Slow page",
      "Make the page faster",
      "a response that takes more than 3 seconds, and again when it is requested once more",
    ],
  }),
  ...toEntries("other", "discovery", {
    "page-answers": ["high", "Server error", "Fix the server error", "a status of 500 or more"],
  }),
  ...toEntries("missing_docs", "discovery", {
    "page-listed": [
      "medium",
      "Page hidden from search engines",
      "Let search engines list the page",
      "`noindex` on a page that the answer depends on, or on the whole site",
    ],
  }),
  ...toEntries("misleading_docs", "integration", {
    "sdk-version-matches": [
      "medium",
      "Sample of another version",
      "Use the version that the docs install",
      "on the page with the answer, an import or an installation of another major version than the docs install",
    ],
  }),
  ...toEntries("missing_docs", "setup", {
    "page-has-content": [
      "high",
      "Page without content",
      "Restore the page or return 404",
      "a page that the answer depends on, with hardly more than its title",
    ],
    "prerequisite-explained": [
      "high",
      "Missing prerequisite",
      "Explain the prerequisite and link it",
      "on the page with the answer, a package that no page installs or a secret that no page explains",
    ],
    "placeholder-explained": [
      "low",
      "Unexplained placeholder",
      "Explain what to put in place of the placeholder",
      "on the page with the answer, a placeholder that no page explains",
    ],
  }),
  ...toEntries("wrong_contract", "integration", {
    "sample-matches-api": [
      "high",
      "Sample contradicts the API description",
      "Make the samples match the API description",
      "a request in a sample that contradicts the OpenAPI description",
    ],
    "openapi-valid": [
      "high",
      "API description is not valid",
      "Fix the API description",
      "an OpenAPI description that isn't valid",
    ],
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

/** What a failed check means. Checks that the catalogue does not have get the defaults of their group. */
export function checkFrictionOf(check: { id: string; group: CheckGroup }): CheckFriction {
  const entry = frictionByCheck.get(check.id);
  if (entry !== undefined) return entry;
  // A stored session may have a group that is none of these.
  const kind = defaultsByGroup[check.group] ?? { category: "other", phase: "execution", severity: "low" };
  return check.group === "declared"
    ? { ...kind, title: "Success check failed", remedy: "Make the success check pass" }
    : { ...kind, title: `Check failed: ${check.id}`, remedy: `Fix ${check.id}` };
}

const oneStepMilder = { critical: "high", high: "medium", medium: "low", low: "low" } as const;
const ofMinorFailure = { critical: "medium", high: "medium", medium: "low", low: "low" } as const;

/**
 * Lower for a warning, for a failure of at most a quarter of the tested items, and for a page on which the answer
 * doesn't depend. `passedShare` is the share that passed over all checks of this ID: a problem that is everywhere blocks
 * agents.
 */
export function severityOf(check: CheckResult, { severity }: CheckFriction, passedShare: number): Friction["severity"] {
  const isMinor = check.status === "warn" || check.share >= 0.75;
  const isEverywhere = passedShare <= 0.25;
  const maxSeverity = severity === "critical" && !isEverywhere ? "high" : severity;
  const reduced = isMinor ? ofMinorFailure[severity] : maxSeverity;
  return check.isOnUnrelatedPage ? oneStepMilder[reduced] : reduced;
}
