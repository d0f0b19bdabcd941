import { dollars, duration, line, percent } from "../../grading/words.ts";
import type { EvalRequest } from "../../runs/schema.ts";
import { Layout } from "../layout.tsx";
import { failureWords, triggerWords } from "../runwords.ts";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { When } from "../when.tsx";
import { outcomeWords } from "../words.ts";
import { GradeMark, Heads } from "./figures.tsx";
import { Status } from "./status.tsx";

type Part = { site: Site; request: EvalRequest; now: number };

/** The runs of one evaluation, and what they came to together. */
export function EvalPage({ viewer, ...part }: Part & { viewer: Viewer }) {
  const { site, request } = part;
  const path = `/evals/${request.id}`;
  const title = request.prompt.title ?? "Evaluation";
  const isOpen = request.status === "pending" || request.status === "running";
  const live = isOpen ? { "hx-sse:connect": `${site.base}${path}/live`, "hx-swap": "innerMorph" } : {};
  return (
    <Layout
      site={site}
      viewer={viewer}
      path={path}
      title={`Evaluation: ${title}`}
      crumbs={[
        { name: "Prompts", path: "/prompts" },
        { name: line(title, 60), path: `/prompts/${request.prompt.id}` },
        { name: `Evaluation ${request.id.slice(-12)}` },
      ]}
    >
      <div {...live}>
        <EvalPart {...part} />
      </div>
    </Layout>
  );
}

/** "72.4 to 81.0" */
const rangeWords = (low: number | null, high: number | null, words: (value: number) => string) =>
  low === null || high === null ? null : `95 % interval ${words(low)} to ${words(high)}`;

/** The part of the page that changes while runs go on. */
export function EvalPart({ site: { base }, request, now }: Part) {
  const { score, successRate, n, infraFailures, medianSeconds, medianCostUsd, smallestChange } = request.result;
  const runs = request.runs;
  return (
    <>
      <header class="toolbar">
        <h1>{request.prompt.title ?? "Evaluation"}</h1>
        <Status status={request.status} />
      </header>
      <p class="muted">
        {runs.length} {runs.length === 1 ? "run" : "runs"}, asked for <When at={request.requestedAt} now={now} />:{" "}
        {triggerWords[request.trigger]}.
      </p>
      <dl class="tiles">
        <div>
          <dt>Mean score</dt>
          <dd>{score ? score.mean.toFixed(1) : "–"}</dd>
          <dd class="soft">
            {score === null
              ? "no run has a score yet"
              : (rangeWords(score.low, score.high, (value) => value.toFixed(1)) ?? "single run: no interval")}
          </dd>
        </div>
        <div>
          <dt>Goal reached</dt>
          <dd>{successRate ? percent(successRate.value) : "–"}</dd>
          <dd class="soft">
            {successRate
              ? `${rangeWords(successRate.low, successRate.high, percent) ?? ""} of ${successRate.of} judged`
              : "nobody judged"}
          </dd>
        </div>
        <div>
          <dt>Median time</dt>
          <dd>{medianSeconds === null ? "–" : duration(medianSeconds)}</dd>
          <dd class="soft">{medianCostUsd === null ? "cost not known" : `median cost ${dollars(medianCostUsd)}`}</dd>
        </div>
        <div>
          <dt>With a score</dt>
          <dd>
            {n} of {runs.length}
          </dd>
          <dd class="soft">{infraFailures === 0 ? "none failed" : `${infraFailures} could not be made`}</dd>
        </div>
      </dl>
      {n > 0 && n < 4 && <p class="muted">It takes 4 runs on each side to tell a change from chance; these are {n}.</p>}
      {smallestChange !== null && (
        <p class="muted">Against as many runs, a change of {smallestChange} points or more would show.</p>
      )}
      <h2>Runs</h2>
      <div class="wide">
        <table class="list run-list">
          <Heads words={["Status", "Run", "Result"]} />
          <tbody>
            {runs.map((run) => (
              <tr key={run.runId}>
                <td>
                  <Status status={run.status} />
                </td>
                <td>
                  <a href={`${base}/runs/${run.runId}`}>{run.runId.slice(-12)}</a>
                </td>
                <td>
                  {run.report ? (
                    <a class="result" href={`${base}/reports/${run.report.slug}`}>
                      <GradeMark grade={run.report.grade} />
                      <span>
                        {run.report.score ?? "no score"} · {outcomeWords[run.report.outcome]}
                      </span>
                    </a>
                  ) : (
                    <span class="soft">{run.failureReason ? failureWords(run.failureReason).title : "–"}</span>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h2>By program</h2>
      <p class="copy">
        <code id="eval-id">{request.id}</code>
        <button type="button" data-copy="#eval-id">
          Copy the id
        </button>
      </p>
    </>
  );
}
