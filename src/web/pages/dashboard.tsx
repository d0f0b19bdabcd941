import type { PromptLine } from "../../prompts/lists.ts";
import { titleOf } from "../../reports/labels.ts";
import type { RunLine } from "../../runs/lists.ts";
import { Field } from "../components/field.tsx";
import { Layout } from "../components/layout.tsx";
import { Status } from "../components/run-table.tsx";
import { type PromptScore, ScoreTable } from "../components/score.tsx";
import { formatZoned, When } from "../components/when.tsx";
import { failureText, runDuration } from "../run-labels.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

export type Overview = {
  site: Site;
  now: number;
  timeZone: string;
  prompts: PromptScore[];
  promptCount: number;
  open: RunLine[];
  due: PromptLine[];
  broken: RunLine[];
};

/** The dashboard of an organization: scores, active, failed and upcoming runs. It updates live. */
export const DashboardPage = ({ viewer, ...overview }: Overview & { viewer: Viewer }) => (
  <Layout site={overview.site} viewer={viewer} path="/" title="Home">
    {overview.promptCount === 0 ? (
      <FirstPrompt site={overview.site} mayWrite={may(viewer, "write")} />
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
    <Scores {...overview} />
    <div class="beside">
      <ActiveRuns {...overview} />
      <FailedRuns {...overview} />
      <UpcomingRuns {...overview} />
    </div>
  </>
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
      Changes are marked improved or regressed only when at least 4 runs per side make the difference statistically
      significant.
      {promptCount > prompts.length && (
        <>
          {" "}
          <a href={`${base}/prompts`}>View all {promptCount} prompts</a>
        </>
      )}
    </p>
  </section>
);

const ActiveRuns = ({ site: { base }, open, now }: Overview) => (
  <section aria-labelledby="now">
    <h2 id="now">
      Active runs <small>{open.length > 0 && open.length}</small>
    </h2>
    {open.length === 0 && <p class="muted">No active runs</p>}
    <ul class="brief" data-count={open.length}>
      {open.map((run) => (
        <li key={run.runId}>
          <a class="plain" href={`${base}/runs/${run.runId}`}>
            {run.title}
          </a>
          <span class="soft">
            <Status status={run.status} /> {run.startedAt && runDuration(run, now)}
          </span>
        </li>
      ))}
    </ul>
  </section>
);

const FailedRuns = ({ site: { base }, broken, now }: Overview) => (
  <section aria-labelledby="broken">
    <h2 id="broken">
      Failed runs <small>last 7 days</small>
    </h2>
    {broken.length === 0 && <p class="muted">No failures in the last 7 days</p>}
    <ul class="brief">
      {broken.map((run) => {
        if (run.failureCause === null) return null;
        const { title, detail, remedy } = failureText(run.failureCause, run.failureDetail);
        return (
          <li key={run.runId} data-cause={run.failureCause}>
            <a class="plain" href={`${base}/runs/${run.runId}`}>
              {run.title}
            </a>
            <span class="soft">
              <strong class="bad">{title}</strong>, <When at={run.createdAt} now={now} />. {detail}
            </span>
            <span class="soft">{remedy}</span>
          </li>
        );
      })}
    </ul>
  </section>
);

const UpcomingRuns = ({ site: { base }, due, now, timeZone }: Overview) => (
  <section aria-labelledby="due">
    <h2 id="due">Upcoming runs</h2>
    {due.length === 0 && <p class="muted">No scheduled runs. Set a schedule on a prompt to run it automatically.</p>}
    <ul class="brief">
      {due.map(({ nextSlotAt, ...prompt }) => (
        <li key={prompt.id}>
          <a class="plain" href={`${base}/prompts/${prompt.id}`}>
            {titleOf(prompt)}
          </a>
          {nextSlotAt && (
            <span class="soft">
              <When at={nextSlotAt} now={now} /> · {formatZoned(Date.parse(nextSlotAt), timeZone)}
            </span>
          )}
        </li>
      ))}
    </ul>
  </section>
);

/** Shown to a new organization: a form for its first prompt, and the API call that does the same. */
const FirstPrompt = ({ site: { base, baseUrl }, mayWrite }: { site: Site; mayWrite: boolean }) => (
  <div class="first">
    <h1>Create your first prompt</h1>
    <p class="lead">
      Describe what a developer would ask an agent to do with your tool, and link to its documentation. evald sends an
      agent to do it and gives you a graded report: where the agent got stuck, the evidence and what to fix first.
    </p>
    {mayWrite && (
      <form method="post" action={`${base}/prompts`}>
        <Field name="title" label="Title" hint="Shown in lists and reports.">
          <input id="title" name="title" maxLength={200} placeholder="First query" />
        </Field>
        <Field name="text" label="Task" hint="Include the URL of the documentation.">
          <textarea
            id="text"
            name="text"
            rows={4}
            required
            placeholder="Run a query with the Python SDK and print its rows. Docs: https://docs.acme.example/"
          />
        </Field>
        <Field name="endGoal" label="End goal" hint="What must be true when the agent is done.">
          <textarea id="endGoal" name="endGoal" rows={2} placeholder="The rows were printed." />
        </Field>
        <button type="submit" class="main">
          Create prompt
        </button>{" "}
        <a href={`${base}/prompts/new`}>More options</a>
      </form>
    )}
    <h2>Or use the API</h2>
    <pre class="wrapped">
      <code>{`curl -s ${baseUrl}/api/v1/prompts \\
  -H "Authorization: Bearer $EVALD_KEY" -H "Content-Type: application/json" \\
  -d '{"title": "First query", "text": "Run a query. Docs: https://docs.acme.example/", "endGoal": "The rows were printed."}'`}</code>
    </pre>
    <p class="hint">
      Next: <a href={`${base}/docs/start`}>the getting started guide</a>.
    </p>
  </div>
);
