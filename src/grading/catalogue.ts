import type { CheckGroup } from "../agents/agent.ts";
import type { SeenCheck } from "./facts.ts";
import type { Friction } from "./score.ts";

/** What a failed check means for an agent: the friction's kind, how bad it is at its worst, its title and its remedy. */
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

/** `critical` is reached only where the check fails nearly everywhere: then agents read nothing at all. */
const known: Record<string, Entry> = {
  "llms-txt-exists": entry("missing_docs", "discovery", "medium", "No llms.txt to start from", "Publish an llms.txt"),
  "llms-txt-valid": entry(
    "misleading_docs",
    "discovery",
    "low",
    "llms.txt is not in the format",
    "Bring llms.txt into the format",
  ),
  "llms-txt-size": entry(
    "unreadable_page",
    "discovery",
    "medium",
    "llms.txt is too long for one read",
    "Split llms.txt",
  ),
  "llms-txt-links-resolve": entry(
    "dead_link",
    "discovery",
    "high",
    "llms.txt lists dead links",
    "Mend the dead links in llms.txt",
  ),
  "llms-txt-links-markdown": entry(
    "unreadable_page",
    "discovery",
    "low",
    "llms.txt does not lead to Markdown",
    "Point llms.txt at Markdown pages",
  ),
  "llms-txt-coverage": entry(
    "missing_docs",
    "discovery",
    "medium",
    "llms.txt leaves pages out",
    "List the missing pages in llms.txt",
  ),
  "llms-txt-directive": entry(
    "missing_docs",
    "discovery",
    "low",
    "Pages do not point to llms.txt",
    "Point to llms.txt from every page",
  ),
  "llms-txt-directive-html": entry(
    "missing_docs",
    "discovery",
    "low",
    "HTML pages do not point to llms.txt",
    "Point to llms.txt from every HTML page",
  ),
  "llms-txt-directive-md": entry(
    "missing_docs",
    "discovery",
    "low",
    "Markdown pages do not point to llms.txt",
    "Point to llms.txt from every Markdown page",
  ),
  "markdown-url-support": entry(
    "unreadable_page",
    "discovery",
    "medium",
    "Pages have no Markdown form at .md",
    "Serve every page as Markdown too",
  ),
  "content-negotiation": entry(
    "unreadable_page",
    "discovery",
    "low",
    "Asking for Markdown does not bring Markdown",
    "Answer “Accept: text/markdown” with Markdown",
  ),
  "rendering-strategy": entry(
    "unreadable_page",
    "discovery",
    "critical",
    "Text appears only with JavaScript",
    "Put the text into the HTML that the server sends",
  ),
  "page-size-markdown": entry(
    "unreadable_page",
    "integration",
    "medium",
    "Markdown pages are too long for one read",
    "Split the long Markdown pages",
  ),
  "page-size-html": entry(
    "unreadable_page",
    "integration",
    "medium",
    "HTML pages are too long for one read",
    "Shorten the long HTML pages",
  ),
  "page-size-transfer": entry("slow", "integration", "low", "Pages are heavy to transfer", "Make the pages lighter"),
  "content-start-position": entry(
    "unreadable_page",
    "integration",
    "low",
    "Content starts late in the page",
    "Move the content to the front of the page",
  ),
  "tabbed-content-serialization": entry(
    "unreadable_page",
    "integration",
    "medium",
    "Tabs make pages too long",
    "Give each tab its own page",
  ),
  "section-header-quality": entry(
    "misleading_docs",
    "integration",
    "low",
    "Headings do not say which variant they are for",
    "Make every heading say what it is for",
  ),
  "markdown-code-fence-validity": entry(
    "broken_sample",
    "integration",
    "medium",
    "Code fences are not closed",
    "Close the code fences",
  ),
  "http-status-codes": entry(
    "silent_failure",
    "discovery",
    "high",
    "Missing pages answer as if they were there",
    "Answer for missing pages with 404",
  ),
  "redirect-behavior": entry(
    "misleading_docs",
    "discovery",
    "low",
    "Redirects that agents may not follow",
    "Redirect by HTTP and on the same host",
  ),
  "cache-header-hygiene": entry(
    "other",
    "discovery",
    "low",
    "Cache headers may keep old docs alive",
    "Set short cache headers",
  ),
  "markdown-content-parity": entry(
    "misleading_docs",
    "integration",
    "medium",
    "Markdown and HTML differ in content",
    "Make the Markdown form say what the HTML form says",
  ),
  "auth-gate-detection": entry(
    "auth",
    "setup",
    "critical",
    "Docs stand behind a sign-in",
    "Let agents read the docs without signing in",
  ),
  "auth-alternative-access": entry(
    "auth",
    "setup",
    "medium",
    "No way around the sign-in for agents",
    "Offer the docs in a form without sign-in",
  ),
  "bot-protection-interference": entry(
    "auth",
    "discovery",
    "critical",
    "Bot protection stands in the way",
    "Let agents through the bot protection",
  ),
  "single-fetch-completeness": entry(
    "unreadable_page",
    "integration",
    "medium",
    "One request does not bring the whole page",
    "Send the whole page at once",
  ),
  "markdown-link-portability": entry(
    "misleading_docs",
    "integration",
    "low",
    "Links in Markdown lead nowhere outside the site",
    "Make the links in Markdown whole addresses",
  ),
  "embedded-data-serialization": entry(
    "unreadable_page",
    "integration",
    "low",
    "Pages carry embedded data in place of text",
    "Keep embedded data out of the text",
  ),
  "link-resolves": entry("dead_link", "discovery", "medium", "Dead link", "Mend dead links"),
  "anchor-resolves": entry("dead_link", "discovery", "low", "Link to a missing part", "Mend dead links"),
  "sample-parses": entry("broken_sample", "integration", "medium", "Code sample does not parse", "Mend code samples"),
  "sample-labelled": entry(
    "broken_sample",
    "integration",
    "low",
    "Code samples without a language",
    "Name the language of code samples",
  ),
  "openapi-valid": entry(
    "wrong_contract",
    "integration",
    "high",
    "API description is not valid",
    "Mend the API description",
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

export function entryOf(check: SeenCheck): Entry {
  const found = Object.hasOwn(known, check.id) ? known[check.id] : undefined;
  if (found !== undefined) return found;
  const kind = byGroup[check.group] ?? { category: "other", phase: "execution", severity: "low" };
  const title = check.group === "declared" ? "Declared check failed" : `Check ${check.id} is not in order`;
  const remedy = check.group === "declared" ? "Make the declared check pass" : `Satisfy ${check.id}`;
  return { ...kind, title, remedy };
}

/**
 * A warning, or a failure on a quarter of the looked at or less, is milder than a plain failure.
 * `everywhere` is the share in order over all checks of this id: what stands in the way everywhere blocks.
 */
export function severityOf(check: SeenCheck, { severity }: Entry, everywhere: number): Friction["severity"] {
  const serious = severity === "critical" || severity === "high";
  if (check.status === "warn" || check.share >= 0.75) return serious ? "medium" : "low";
  return severity === "critical" && everywhere > 0.25 ? "high" : severity;
}
