/**
 * What one prompt, or one gate over several, ended with. `not_judged`: there is a score, but none of the scope that was asked for.
 * `inconclusive`: the result is unknown.
 * @typedef {"passed" | "failed" | "not_judged" | "inconclusive"} Verdict
 * @typedef {{ title: string, verdict: Verdict, reason: string, url: string | null, base: number | null, head: number | null, friction: string[] }} Result
 */

const order = /** @type {const} */ (["failed", "inconclusive", "not_judged", "passed"]);
const labels = {
  passed: "✅ Passed",
  failed: "❌ Failed",
  not_judged: "⚪ Goal not tested",
  inconclusive: "⚪ No verdict",
};
const heads = {
  passed: "passed",
  failed: "failed",
  not_judged: "the goal was not tested",
  inconclusive: "no verdict",
};
const maxFriction = 10;

/** @type {Record<Verdict, number>} */
export const exitCodes = { passed: 0, failed: 1, not_judged: 3, inconclusive: 3 };

/** The verdict over all results: the first of failed, inconclusive, not judged. @param {Result[]} results @returns {Verdict} */
export const overall = (results) =>
  order.find((each) => results.some(({ verdict }) => verdict === each)) ?? "inconclusive";

/** @param {any} gate @returns {Result} */
export function ofGate(gate) {
  const { sides: all, score } = gate.comparison?.evidence ?? {};
  const sides = list(all);
  const friction = list(gate.comparison?.friction?.new);
  const titles = list(gate.prompts).map((each) => text(each?.title) || text(each?.id));
  return {
    title: titles.filter(Boolean).join(", ") || "evald",
    verdict: gate.status === "passed" || gate.status === "failed" ? gate.status : "inconclusive",
    reason: reason(gate.status === "running" ? "the runs have not finished in time" : gate.reason),
    url: text(gate.pageUrl) || null,
    // The means that the change in the reason is the change of.
    base: number(score?.before ?? sides[0]?.score?.mean),
    head: number(score?.after ?? (sides[1] ?? gate.head)?.score?.mean),
    friction: friction.map((each) => `${text(each?.severity)}: ${text(each?.title)}`),
  };
}

/** An error that the CLI printed in place of a result. @param {any} failure @returns {Result} */
export const ofFailure = ({ detail }) => ({
  ...{ title: "evald", verdict: "inconclusive", reason: reason(detail) },
  ...{ url: null, base: null, head: null, friction: [] },
});

/**
 * A run against a bar; without one, against its goal.
 * @param {any} run @param {{ minScore: number | null, scope: string }} bar @returns {Result}
 */
export function ofRun(run, { minScore, scope }) {
  const { report, prompt } = run;
  return {
    title: text(prompt?.title) || text(prompt?.id) || "evald",
    ...verdictOf(run, minScore, scope),
    url: text(report?.url ?? run.runUrl) || null,
    base: null,
    head: number(report?.score),
    friction: [],
  };
}

/** @param {any} run @param {number | null} minScore @param {string} scope @returns {Pick<Result, "verdict" | "reason">} */
function verdictOf({ report, status, failureReason }, minScore, scope) {
  if (!report) return { verdict: "inconclusive", reason: reason(failureReason ?? `the run is ${text(status)}`) };
  const { score = null, outcome, nullNotice } = report;
  if (score !== null && number(score) === null)
    return { verdict: "inconclusive", reason: "the score in the result is not a number" };
  if (score === null) return { verdict: "not_judged", reason: reason(nullNotice ?? outcome) };
  if (minScore === null) {
    if (outcome === "succeeded") return { verdict: "passed", reason: "the goal was reached" };
    if (outcome === "goal_not_met") return { verdict: "failed", reason: "the goal was not reached" };
    return { verdict: "not_judged", reason: reason(nullNotice ?? "Goal not tested") };
  }
  if (report.scope !== scope)
    return {
      verdict: "not_judged",
      reason: `the minimum is for scores of scope ${scope}, and this one has scope ${text(report.scope)}`,
    };
  return score >= minScore
    ? { verdict: "passed", reason: `the score ${score} meets the minimum of ${minScore}` }
    : { verdict: "failed", reason: `the score ${score} is below the minimum of ${minScore}` };
}

/** The results as Markdown. `trusted` starts every link. @param {Result[]} results @param {{ name: string, trusted: string, previewUrl: string | null }} options */
export function toMarkdown(results, { name, trusted, previewUrl }) {
  const link = ({ url, title }) =>
    url !== null && isUnder(url, trusted) ? `[${safe(title)}](${toTarget(url)})` : safe(title);
  const score = (value) => (value === null ? "" : String(value));
  const rows = results.map((each) =>
    [link(each), labels[each.verdict], score(each.base), score(each.head), safe(each.reason)].join(" | "),
  );
  return [
    `## ${safe(name)}: ${heads[overall(results)]}`,
    [
      "| Prompt | Verdict | Base | Head | Reason |",
      "| --- | --- | --- | --- | --- |",
      ...rows.map((row) => `| ${row} |`),
    ].join("\n"),
    ...results.filter(({ friction }) => friction.length > 0).map((each) => toFriction(each, results.length > 1)),
    ...(previewUrl === null ? [] : [`Preview: \`${oneLine(previewUrl).replaceAll("`", "")}\``]),
  ].join("\n\n");
}

/** @param {Result} result @param {boolean} isNamed */
function toFriction({ title, friction }, isNamed) {
  const rest = friction.length - maxFriction;
  const lines = friction.slice(0, maxFriction).map((each) => `- ${safe(each)}`);
  return [
    `New friction${isNamed ? ` of ${safe(title)}` : ""}:`,
    "",
    ...lines,
    ...(rest > 0 ? [`- and ${rest} more`] : []),
  ].join("\n");
}

/** Whether a URL leads to the server at `base`. @param {string} url @param {string} base */
export function isUnder(url, base) {
  try {
    const { origin, pathname } = new URL(base);
    return new URL(url).origin === origin && new URL(url).pathname.startsWith(pathname.replace(/\/*$/, "/"));
  } catch {
    return false;
  }
}

/** @param {unknown} value */
const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);
/** @param {unknown} value @returns {any[]} */
const list = (value) => (Array.isArray(value) ? value : []);
/** @param {unknown} value */
const reason = (value) => text(value) || "no reason was given";
/** The target of a Markdown link, in which nothing ends the link or the cell of a table. @param {string} url */
const toTarget = (url) =>
  new URL(url).href.replace(
    /[^\w\-.~/:?=&%#+,;@]/gu,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`,
  );
/** @param {unknown} value */
const text = (value) => (typeof value === "string" ? value : "");

/** A text of a page, a model or a fork as one line. @param {string} untrusted */
export const oneLine = (untrusted) => untrusted.slice(0, 2000).replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, " ");

/** A text of a page, a model or a fork, so that it can't act as markup, notify anybody or close an issue. @param {string} untrusted */
export const safe = (untrusted) =>
  oneLine(untrusted)
    .replaceAll(/[\\`*_{}[\]()<>#|!~&$]/g, (mark) => `&#${mark.codePointAt(0)};`)
    // Breaks references to issues, mentions and links with a zero-width space.
    .replaceAll("&#35;", "&#35;\u200b")
    .replaceAll("@", "@\u200b")
    .replaceAll("://", ":\u200b//");
