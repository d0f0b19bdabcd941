import type { EndCause } from "../../agents/failure.ts";
import { count, dollars, duration, oneLine, percent } from "../../grading/text.ts";
import { agentLabel, outcomeLabels, scoreText } from "../../reports/labels.ts";
import type { EvalRequest } from "../../runs/schema.ts";
import { GradeMark, TableHead } from "../components/figures.tsx";
import { Copyable } from "../components/form-parts.tsx";
import { Layout } from "../components/layout.tsx";
import { PreviewMark, Status } from "../components/run-table.tsx";
import { When } from "../components/when.tsx";
import { failureText, triggerLabels } from "../run-labels.ts";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

type EvalPartProps = {
  site: Site;
  request: EvalRequest;
  failures: Map<string, EndCause>;
  isPreview: boolean;
  gateId: string | null;
  /** Reports of the comparable evaluation before and of this one; null if there is none. */
  comparedSlugs: [before: string, after: string] | null;
  now: number;
};

/** The runs of an evaluation and their combined results. */
export function EvalPage({ viewer, ...part }: EvalPartProps & { viewer: Viewer }) {
  const { site, request } = part;
  const path = `/evals/${request.id}`;
  const title = request.prompt.title ?? "Evaluation";
  const isOpen = request.status === "pending" || request.status === "running";
  const live = isOpen ? { "hx-sse:connect": `${site.base}${path}/live`, "hx-swap": "innerMorph" } : {};
  return (
    <Layout
      {...{ site, viewer }}
      path={path}
      title={`Evaluation: ${title}`}
      crumbs={[
        { name: "Prompts", path: "/prompts" },
        { name: oneLine(title, 60), path: `/prompts/${request.prompt.id}` },
        { name: "Evaluation" },
      ]}
    >
      <div {...live}>
        <EvalPart {...part} />
      </div>
    </Layout>
  );
}

/** The combined results of the runs with one agent. */
function Result({ result, runCount }: { result: EvalRequest["result"]; runCount: number }) {
  const { score, successRate, n, infraFailures, medianSeconds, medianCostUsd, smallestChange } = result;
  return (
    <>
      <dl class="tiles">
        <div>
          <dt>Mean score</dt>
          <dd>{score ? score.mean.toFixed(1) : "–"}</dd>
          <dd class="soft">
            {score === null
              ? "no scores yet"
              : (intervalText(score.low, score.high, (value) => value.toFixed(1)) ?? "n = 1, no confidence interval")}
          </dd>
        </div>
        <div>
          <dt>Goal reached</dt>
          <dd>{successRate ? percent(successRate.value) : "–"}</dd>
          <dd class="soft">
            {successRate
              ? `${intervalText(successRate.low, successRate.high, percent) ?? ""} of ${successRate.of} judged`
              : "not judged"}
          </dd>
        </div>
        <div>
          <dt>Median time</dt>
          <dd>{medianSeconds === null ? "–" : duration(medianSeconds)}</dd>
          <dd class="soft">{medianCostUsd === null ? "cost unknown" : `median cost ${dollars(medianCostUsd)}`}</dd>
        </div>
        <div>
          <dt>Scored runs</dt>
          <dd>
            {n} of {runCount}
          </dd>
          <dd class="soft">{infraFailures === 0 ? "no failures" : `${infraFailures} failed`}</dd>
        </div>
      </dl>
      {n > 0 && n < 4 && (
        <p class="muted">Use 4 or more runs to get statistically meaningful comparisons. This evaluation has {n}.</p>
      )}
      {smallestChange !== null && (
        <p class="muted">Minimum detectable change: {smallestChange} points at this sample size.</p>
      )}
    </>
  );
}

/** "95% CI 72.4 to 81.0" */
const intervalText = (low: number | null, high: number | null, format: (value: number) => string) =>
  low === null || high === null ? null : `95% CI ${format(low)} to ${format(high)}`;

/** The part of the page that updates while runs are in progress. */
export function EvalPart({ site: { base }, request, failures, isPreview, gateId, comparedSlugs, now }: EvalPartProps) {
  const runs = request.runs;
  return (
    <>
      <header class="toolbar">
        <h1>{request.prompt.title ?? "Evaluation"}</h1>
        <Status status={request.status} />
        {isPreview && <PreviewMark />}
        {comparedSlugs && (
          <span class="end">
            <a class="button" href={`${base}/compare?slugs=${comparedSlugs.join()}`}>
              Compare with previous
            </a>
          </span>
        )}
      </header>
      <p class="muted">
        {count(runs.length, "run")} · requested <When at={request.requestedAt} now={now} /> · trigger:{" "}
        {triggerLabels[request.trigger]}
        {gateId && (
          <>
            {" "}
            · <a href={`${base}/gates/${gateId}`}>View gate</a>
          </>
        )}
      </p>
      {request.agents.map(({ agent, result }, i) => (
        <section key={i} data-agent={agent.id}>
          {request.agents.length > 1 && <h2>{agentLabel(agent)}</h2>}
          <Result result={result} runCount={runs.length / request.agents.length} />
        </section>
      ))}
      <h2>Runs</h2>
      <div class="scroll-area">
        <table class="list run-list">
          <TableHead labels={["Status", "Run", "Agent", "Result"]} />
          <tbody>
            {runs.map((run, i) => (
              <tr key={run.runId}>
                <td>
                  <Status status={run.status} />
                </td>
                <td>
                  <a href={`${base}/runs/${run.runId}`}>Run {i + 1}</a>
                </td>
                <td class="soft">{agentLabel(run.agent)}</td>
                <td>
                  {run.report ? (
                    <a class="result" href={`${base}/reports/${run.report.slug}`}>
                      <GradeMark grade={run.report.grade} />
                      <span>
                        {scoreText(run.report) ?? "no score"} · {outcomeLabels[run.report.outcome]}
                      </span>
                    </a>
                  ) : (
                    <Failure cause={failures.get(run.runId)} />
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h2>API</h2>
      <Copyable id="eval-id" buttonText="Copy ID" value={request.id} />
    </>
  );
}

function Failure({ cause }: { cause: EndCause | undefined }) {
  if (cause === undefined) return <span class="soft">–</span>;
  return (
    <span class="soft" data-cause={cause}>
      {failureText(cause, null).title}
    </span>
  );
}
