import type { ComponentChildren } from "preact";
import { oneLine } from "../../grading/text.ts";
import type { PromptItem } from "../../prompts/lists.ts";
import { titleOf } from "../../reports/labels.ts";
import type { RunListItem } from "../../runs/lists.ts";
import { type FirstSteps, FirstStepsList } from "../components/first-steps.tsx";
import { Layout } from "../components/layout.tsx";
import { PreviewMark, Status } from "../components/run-table.tsx";
import { SchemaField, SchemaForm } from "../components/schema-form.tsx";
import { type PromptScore, ScoreTable } from "../components/score.tsx";
import { formatZoned, When } from "../components/when.tsx";
import { PromptForm } from "../prompt-form.ts";
import { failureText, runDuration } from "../run-labels.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

export type Overview = {
  site: Site;
  now: number;
  timeZone: string;
  prompts: PromptScore[];
  promptCount: number;
  /** The newest unfinished and failed runs, up to `maxRuns`. */
  activeRuns: RunListItem[];
  failedRuns: RunListItem[];
  maxRuns: number;
  scheduledPrompts: PromptItem[];
};

type Props = Overview & {
  viewer: Viewer;
  /** null: done, hidden, or not for this viewer. */
  steps: FirstSteps | null;
  /** Whether a run of a new prompt needs no consent to its cost. */
  isRunFree: boolean;
};

/** Lines of each of the lists beside the scores. */
const maxListItems = 6;
/** A change counts as recent for this long. */
const recentMs = 30 * 24 * 3600_000;

/** The dashboard of an organization: scores, active, failed and upcoming runs. It updates live. Before the first prompt, a form for it. */
export const DashboardPage = ({ viewer, steps, isRunFree, ...overview }: Props) => (
  <Layout site={overview.site} viewer={viewer} path="/" title="Home">
    {overview.promptCount === 0 || steps?.promptId === null ? (
      <FirstPrompt {...{ viewer, steps, isRunFree, ...overview }} />
    ) : (
      <>
        <header class="toolbar">
          <h1>Home</h1>
          {may(viewer, "write") && (
            <span class="end">
              <a class="button main" href={`${overview.site.base}/prompts/new`}>
                New prompt
              </a>
            </span>
          )}
        </header>
        {steps && <FirstStepsList site={overview.site} steps={steps} />}
        <div class="overview" hx-sse:connect={`${overview.site.base}/live?org=${viewer.org}`} hx-swap="innerMorph">
          <DashboardPart {...overview} />
        </div>
      </>
    )}
  </Layout>
);

/** The part of the page that updates live. */
export const DashboardPart = (overview: Overview) => (
  <>
    <Figures {...overview} />
    <Scores {...overview} />
    <div class="beside">
      <ActiveRuns {...overview} />
      <FailedRuns {...overview} />
      <UpcomingRuns {...overview} />
    </div>
  </>
);

/** What needs attention, each figure linked to its list. */
function Figures({
  site: { base },
  prompts,
  activeRuns,
  failedRuns,
  maxRuns,
  scheduledPrompts: [next],
  now,
}: Overview) {
  const regressed = prompts.filter(
    ({ latest }) => latest?.change?.verdict === "regressed" && Date.parse(latest.change.at) > now - recentMs,
  );
  const [firstRegressed] = regressed;
  const countOf = (runs: RunListItem[]) => (runs.length < maxRuns ? String(runs.length) : `${maxRuns - 1}+`);
  const nounOf = (noun: string, { length }: unknown[]) => (length === 1 ? noun : `${noun}s`);
  return (
    <dl class="figures">
      <Figure
        name="Regressed"
        note={`${nounOf("prompt", regressed)}, last 30 days`}
        href={
          firstRegressed &&
          (regressed.length === 1
            ? `${base}/trends?promptId=${firstRegressed.prompt.id}`
            : `${base}/prompts?sort=change`)
        }
        isBad={regressed.length > 0}
      >
        {regressed.length}
      </Figure>
      <Figure
        name="Failed"
        note={`${nounOf("run", failedRuns)}, last 7 days`}
        href={`${base}/runs?status=failed`}
        isBad={failedRuns.length > 0}
      >
        {countOf(failedRuns)}
      </Figure>
      <Figure name="Running" note={`${nounOf("run", activeRuns)} now`} href={`${base}/runs?status=running`}>
        {countOf(activeRuns)}
      </Figure>
      <Figure
        name="Next run"
        note={next ? titleOf(next) : "nothing scheduled"}
        href={next && `${base}/prompts/${next.id}`}
      >
        {next?.nextEvaluationAt ? <When at={next.nextEvaluationAt} now={now} /> : "–"}
      </Figure>
    </dl>
  );
}

type FigureProps = { name: string; note: string; href?: string; isBad?: boolean; children: ComponentChildren };

const Figure = ({ name, note, href, isBad = false, children }: FigureProps) => (
  <div data-figure={name.split(" ")[0]?.toLowerCase()} class={isBad ? "bad" : undefined}>
    <dt>{name}</dt>
    <dd>
      <strong>{href === undefined ? children : <a href={href}>{children}</a>}</strong>
      <small>{oneLine(note, 60)}</small>
    </dd>
  </div>
);

const Scores = ({ site: { base }, prompts, promptCount, now }: Overview) => (
  <section aria-labelledby="scores">
    <h2 id="scores">Scores</h2>
    <ScoreTable
      base={base}
      prompts={prompts}
      numbers={["Latest report"]}
      cells={({ latest }) => <td class="number soft">{latest ? <When at={latest.at} now={now} /> : "–"}</td>}
    />
    <p class="hint">
      Changes are marked improved or regressed only when they are statistically significant: between the last two
      evaluations, or as a change of the level in Trends.
      {promptCount > prompts.length && (
        <>
          {" "}
          <a href={`${base}/prompts`}>View all {promptCount} prompts</a>
        </>
      )}
    </p>
  </section>
);

const ActiveRuns = ({ site: { base }, activeRuns, now }: Overview) => (
  <section aria-labelledby="now">
    <h2 id="now">Active runs</h2>
    {activeRuns.length === 0 && <p class="muted">No active runs</p>}
    <ul class="brief" data-count={activeRuns.length}>
      {activeRuns.slice(0, maxListItems).map((run) => (
        <li key={run.runId}>
          <a class="plain" href={`${base}/runs/${run.runId}`}>
            {run.title}
          </a>
          <span class="soft">
            {run.isPreview && <PreviewMark />} <Status status={run.status} waitingFor={run.waitingFor} />{" "}
            {run.startedAt && runDuration(run, now)}
          </span>
        </li>
      ))}
    </ul>
  </section>
);

const FailedRuns = ({ site: { base }, failedRuns, now }: Overview) => (
  <section aria-labelledby="broken">
    <h2 id="broken">
      Failed runs <small>last 7 days</small>
    </h2>
    {failedRuns.length === 0 && <p class="muted">No failures in the last 7 days</p>}
    <ul class="brief">
      {failedRuns.slice(0, maxListItems).map((run) => {
        if (run.failureCause === null) return null;
        const { title, detail, remedy } = failureText(run.failureCause, run.failureDetail);
        return (
          <li key={run.runId} data-cause={run.failureCause}>
            <a class="plain" href={`${base}/runs/${run.runId}`}>
              {run.title}
            </a>
            <span class="soft">
              {run.isPreview && <PreviewMark />} <strong class="bad">{title}</strong>,{" "}
              <When at={run.createdAt} now={now} />. {detail}
            </span>
            <span class="soft">{remedy}</span>
          </li>
        );
      })}
    </ul>
  </section>
);

const UpcomingRuns = ({ site: { base }, scheduledPrompts, now, timeZone }: Overview) => (
  <section aria-labelledby="due">
    <h2 id="due">Upcoming runs</h2>
    {scheduledPrompts.length === 0 && (
      <p class="muted">No scheduled runs. Set a schedule on a prompt to run it automatically.</p>
    )}
    <ul class="brief">
      {scheduledPrompts.map(({ nextEvaluationAt, ...prompt }) => (
        <li key={prompt.id}>
          <a class="plain" href={`${base}/prompts/${prompt.id}`}>
            {titleOf(prompt)}
          </a>
          {nextEvaluationAt && (
            <span class="soft">
              <When at={nextEvaluationAt} now={now} /> · {formatZoned(Date.parse(nextEvaluationAt), timeZone)} (
              {timeZone})
            </span>
          )}
        </li>
      ))}
    </ul>
  </section>
);

/** What a developer tries first, for any product. */
const firstPromptValues = new URLSearchParams({
  text: "Follow the getting started guide and complete its first example.",
});

/**
 * Shown to an organization without prompts of its own: a form for the first one, and the API call that does the same.
 * `prompts`: the example, if there is one.
 */
const FirstPrompt = ({ site, site: { base, baseUrl }, viewer, prompts, steps, isRunFree }: Props) => (
  <div class="first">
    <h1>Test your docs with an agent</h1>
    <p class="lead">
      Enter the URL of your docs and a task. evald sends an agent to do it and gives you a graded report: where the
      agent got stuck, the evidence and what to fix first.
    </p>
    {prompts.map(
      ({ prompt, latest }) =>
        latest && (
          <p key={prompt.id}>
            <a href={`${base}/reports/${latest.slug}`}>View an example report</a>
          </p>
        ),
    )}
    {may(viewer, "write") && (
      <SchemaForm schema={PromptForm} values={firstPromptValues} action={`${base}/prompts`}>
        <SchemaField
          name="docsUrl"
          label="Docs URL"
          hint="Where the agent starts."
          required
          placeholder="https://docs.acme.example/"
        />
        <SchemaField
          name="text"
          label="Task"
          hint="What a developer would ask an agent to do with your product."
          rows={3}
          required
        />
        <SchemaField
          name="endGoal"
          label="End goal (optional)"
          hint="What must be true when the agent is done."
          rows={2}
          placeholder="The example ran and printed its result."
        />
        <button type="submit" class="main" {...(isRunFree && { name: "do", value: "run" })}>
          {isRunFree ? "Create and run" : "Create prompt"}
        </button>{" "}
        <a href={`${base}/prompts/new`}>More options</a>
      </SchemaForm>
    )}
    <div class="after">{steps && <FirstStepsList site={site} steps={steps} />}</div>
    <h2>Or use the API</h2>
    <pre class="wrapped">
      <code>{`curl -s ${baseUrl}/api/v1/prompts \\
  -H "Authorization: Bearer $EVALD_KEY" -H "Content-Type: application/json" \\
  -d '{"title": "First query", "text": "Run a query.", "additionalUrls": [{"url": "https://docs.acme.example/", "kind": "docs"}]}'`}</code>
    </pre>
    <p class="hint">
      Next: <a href={`${base}/docs/start`}>the getting started guide</a>.
    </p>
  </div>
);
