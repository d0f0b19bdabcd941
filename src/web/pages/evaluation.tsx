import type { RunFailure } from "../../agents/remedies.ts";
import { count, dollars, duration, oneLine, percent } from "../../grading/text.ts";
import { agentLabel, notMeasured, outcomeLabels, scoreText } from "../../reports/labels.ts";
import type { DocsVariant } from "../../runs/lists.ts";
import type { EvalRequest } from "../../runs/schema.ts";
import { minRuns } from "../../stats/power.ts";
import { FailureNotice } from "../components/failure.tsx";
import { GradeMark, TableHead } from "../components/figures.tsx";
import { Copyable } from "../components/form-parts.tsx";
import { Layout } from "../components/layout.tsx";
import { DocsMark, Status } from "../components/run-table.tsx";
import { When } from "../components/when.tsx";
import { triggerLabels } from "../run-labels.ts";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

type EvalPartProps = {
  site: Site;
  viewer: Viewer;
  request: EvalRequest;
  docsVariant: DocsVariant;
  gateId: string | null;
  /** URL of the comparison with the previous comparable evaluation; null if there is none. */
  comparisonHref: string | null;
  now: number;
};

/** The runs of an evaluation and their combined results. */
export function EvalPage(part: EvalPartProps) {
  const { site, viewer, request } = part;
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
              ? notMeasured
              : (intervalText(score.low, score.high, (value) => value.toFixed(1)) ?? "n = 1, no confidence interval")}
          </dd>
        </div>
        <div>
          <dt>Goal reached</dt>
          <dd>{successRate ? percent(successRate.value) : "–"}</dd>
          <dd class="soft">
            {successRate
              ? `${intervalText(successRate.low, successRate.high, percent) ?? ""} of ${successRate.of} judged`
              : outcomeLabels.not_judged}
          </dd>
        </div>
        <div>
          <dt>Median time</dt>
          <dd>{medianSeconds === null ? "–" : duration(medianSeconds)}</dd>
          <dd class="soft">
            {medianCostUsd === null ? "Cost unknown" : `Median agent cost ${dollars(medianCostUsd)}`}
          </dd>
        </div>
        <div>
          <dt>Scored runs</dt>
          <dd>
            {n} of {runCount}
          </dd>
          <dd class="soft">{infraFailures === 0 ? "No failures" : `${infraFailures} failed`}</dd>
        </div>
      </dl>
      {n > 0 && n < minRuns && (
        <p class="muted">
          Use {minRuns} or more runs to get statistically meaningful comparisons. This evaluation has {n}.
        </p>
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
export function EvalPart({ site: { base }, viewer, request, docsVariant, gateId, comparisonHref, now }: EvalPartProps) {
  const runs = request.runs;
  // All agents have the same number of runs.
  const runsOfAgent = runs.length / request.agents.length;
  const failedGroups = groupFailures(request);
  return (
    <>
      <header class="toolbar">
        <h1>{request.prompt.title ?? "Evaluation"}</h1>
        <Status status={request.status} />
        <DocsMark variant={docsVariant} />
        {comparisonHref && (
          <span class="end">
            <a class="button" href={comparisonHref}>
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
      {failedGroups.map(({ failure, runIds, agent }, i) => (
        <FailureNotice
          key={i}
          id={`remedy-${i}`}
          {...{ base, viewer, failure }}
          runId={runIds.at(-1) ?? null}
          lead={
            <>
              {runIds.length} of {count(runs.length, "run")} failed
              {request.agents.length > 1 && ` with ${agentLabel(agent)}`}.{" "}
            </>
          }
        />
      ))}
      {request.agents.length > 1 && (
        <p>
          <a href={`${base}/matrix?evalRequestId=${request.id}`}>Compare agents side by side</a>
        </p>
      )}
      {request.agents.map(({ agent, result }, i) => (
        <section key={i} data-agent={agent.id}>
          {request.agents.length > 1 && <h2>{agentLabel(agent)}</h2>}
          <Result result={result} runCount={runsOfAgent} />
        </section>
      ))}
      <h2>Runs</h2>
      <Runs runs={runs} base={base} />
      <h2>API</h2>
      <Copyable id="eval-id" buttonText="Copy ID" value={request.id} />
    </>
  );
}

const Runs = ({ runs, base }: { runs: EvalRequest["runs"]; base: string }) => (
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
                    {scoreText(run.report)} · {outcomeLabels[run.report.outcome]}
                  </span>
                </a>
              ) : (
                <Failure failure={run.failure} />
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

function Failure({ failure }: { failure: RunFailure | null }) {
  if (failure === null) return <span class="soft">–</span>;
  return (
    <span class="soft" data-code={failure.code} data-cause={failure.cause}>
      {failure.title}
    </span>
  );
}

/** The failed runs of an evaluation, grouped by what to do about them. Cancelled runs are left out, because they need no action. */
function groupFailures({ runs }: EvalRequest) {
  const failed = runs.flatMap(({ runId, agent, status, failure }) =>
    status === "failed" && failure !== null && failure.code !== "cancelled" ? [{ runId, agent, failure }] : [],
  );
  const groups = Map.groupBy(failed, ({ agent, failure }) => `${agent.id} ${failure.code} ${failure.subject}`);
  return [...groups.values()].flatMap((group) => {
    const last = group.at(-1);
    return last ? [{ ...last, runIds: group.map(({ runId }) => runId) }] : [];
  });
}
