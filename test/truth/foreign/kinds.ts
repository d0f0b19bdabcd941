import { conventionsKind, findingKinds, pathKinds } from "../../../src/grading/findings/finding-kinds.ts";

/** The kind of finding that a planted defect leads to. Samples that don't parse depend on their language, see `sampleOf`. */
const kindOfDefect: Record<string, string> = {
  dead_link: "link-resolves",
  wrong_anchor: "anchor-resolves",
  redirect_loop: "redirect-ends",
  soft_404: "missing-pages-say-so",
  soft_404_foreign: "missing-pages-say-so",
  wall_200: "open-access",
  wall_401: "open-access",
  wall_403: "open-access",
  wall_login_redirect: "open-access",
  js_shell: "text-without-scripts",
  server_500: "page-answers",
  slow_5s: "answers-in-time",
  octet_stream: "content-type-readable",
  charset: "charset-matches",
  empty_page: "has-text",
  noindex: "page-listed",
  robots_block: "robots-allow",
  md_differs: conventionsKind.id,
  html_redirect: "redirects-by-status",
  long_without_headings: "long-page-has-headings",
  llms_stale: "llms-entry-resolves",
  llms_lacks_answer: conventionsKind.id,
  sitemap_stale: "sitemap-entry-resolves",
  openapi_ref: "openapi-valid",
  api_method: "sample-matches-api",
  api_base_path: "sample-matches-api",
  api_required_header: "sample-matches-api",
  api_path: "sample-matches-api",
  api_query: "sample-matches-api",
  api_auth_header: "sample-matches-api",
  api_field: "sample-matches-api",
  api_type: "sample-matches-api",
  version_mismatch: "sample-matches-api",
  version_mismatch_sdk: "sdk-version-matches",
  placeholder: "placeholder-explained",
  missing_secret: "prerequisite-explained",
  missing_secret_other: "prerequisite-explained",
  wrong_package: "prerequisite-explained",
  no_install: "prerequisite-explained",
  prompt_signs: "command-copyable",
  wrong_label: "sample-parses",
  setup_does_not_parse: "sample-parses",
  tabs_hidden: "tabs-have-content",
  image_only: "text-instead-of-pictures",
  code_screenshot: "text-instead-of-pictures",
  page_5mb: "page-size",
  coming_soon: "page-has-content",
  todo_left: pathKinds.unclearAnswer.id,
  answer_removed: pathKinds.unclearAnswer.id,
};

/** Planted defects for which the explorer has no rule, as the documentation names them. */
export const withoutRule: Record<string, string> = {
  contradiction: "statements that contradict each other",
  deprecated_first: "outdated pages that come before the current ones",
  renamed_function: "calls of functions that don't exist",
  missing_import: "missing imports",
  steps_order: "steps in the wrong order",
  broken_table: "broken tables",
};

/** The language of a planted sample, and whether only a bracket or its grammar is wrong; null for other defects. */
export function sampleOf(defect: string): { language: string; fault: "bracket" | "grammar" } | null {
  const [, fault, language] = /^(bracket|grammar)_(\w+)$/.exec(defect) ?? [];
  return language ? { language, fault: fault as "bracket" | "grammar" } : null;
}

/** The kind of finding that a planted defect leads to; null if none does, undefined for an unknown defect. */
export const kindIdOf = (defect: string): string | null | undefined =>
  defect in withoutRule ? null : sampleOf(defect) === null ? kindOfDefect[defect] : "sample-parses";

/** The kind of a finding in a report: the longest title with which its own starts. Null if it has no kind. */
export function kindIdOfTitle(title: string): string | null {
  const matching = findingKinds.filter((kind) => title.startsWith(kind.title));
  return matching.sort((a, b) => b.title.length - a.title.length)[0]?.id ?? null;
}
