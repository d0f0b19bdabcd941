import type { PromptLine } from "../../prompts/lists.ts";
import type { RunLine } from "../../runs/lists.ts";
import { Layout } from "../layout.tsx";
import { failureWords, tookWords } from "../runwords.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";
import { When, zonedWords } from "../when.tsx";
import { titleOf } from "../words.ts";
import { Field } from "./fields.tsx";
import { ScoreTable, type Standing } from "./score.tsx";
import { Status } from "./status.tsx";

export type Overview = {
  site: Site;
  now: number;
  timeZone: string;
  prompts: Standing[];
  promptCount: number;
  open: RunLine[];
  due: PromptLine[];
  broken: RunLine[];
};

/** How an organisation stands: scores, what runs, what is next, what broke. It changes by itself. */
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

/** The part of the page that changes by itself. */
export const DashboardPart = (overview: Overview) => (
  <>
    <Scores {...overview} />
    <div class="beside">
      <Open {...overview} />
      <Broken {...overview} />
      <Due {...overview} />
    </div>
  </>
);

const Scores = ({ site: { base }, prompts, promptCount, now }: Overview) => (
  <section aria-labelledby="scores">
    <h2 id="scores">Scores</h2>
    <ScoreTable
      base={base}
      prompts={prompts}
      numbers={["Last report"]}
      cells={({ latest }) => <td class="number soft">{latest ? <When at={latest.at} now={now} /> : "–"}</td>}
    />
    <p class="hint">
      A change is called improved or regressed only where 4 runs on each side tell it from chance.
      {promptCount > prompts.length && (
        <>
          {" "}
          <a href={`${base}/prompts`}>All {promptCount} prompts</a>
        </>
      )}
    </p>
  </section>
);

const Open = ({ site: { base }, open, now }: Overview) => (
  <section aria-labelledby="now">
    <h2 id="now">
      Now <small>{open.length > 0 && open.length}</small>
    </h2>
    {open.length === 0 && <p class="muted">Nothing runs.</p>}
    <ul class="brief">
      {open.map((run) => (
        <li key={run.runId}>
          <a class="plain" href={`${base}/runs/${run.runId}`}>
            {run.title}
          </a>
          <span class="soft">
            <Status status={run.status} /> {run.startedAt && tookWords(run, now)}
          </span>
        </li>
      ))}
    </ul>
  </section>
);

const Broken = ({ site: { base }, broken, now }: Overview) => (
  <section aria-labelledby="broken">
    <h2 id="broken">
      Broke <small>in 7 days</small>
    </h2>
    {broken.length === 0 && <p class="muted">No run failed.</p>}
    <ul class="brief">
      {broken.map((run) => {
        const { title, detail, remedy } = failureWords(run.failureReason ?? "");
        return (
          <li key={run.runId}>
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

const Due = ({ site: { base }, due, now, timeZone }: Overview) => (
  <section aria-labelledby="due">
    <h2 id="due">Next</h2>
    {due.length === 0 && <p class="muted">Nothing is scheduled. A prompt runs by itself once it has a frequency.</p>}
    <ul class="brief">
      {due.map(({ nextSlotAt, ...prompt }) => (
        <li key={prompt.id}>
          <a class="plain" href={`${base}/prompts/${prompt.id}`}>
            {titleOf(prompt)}
          </a>
          {nextSlotAt && (
            <span class="soft">
              <When at={nextSlotAt} now={now} /> · {zonedWords(Date.parse(nextSlotAt), timeZone)}
            </span>
          )}
        </li>
      ))}
    </ul>
  </section>
);

/** What a new organisation sees: one form makes its first prompt, one line shows the way for programs. */
const FirstPrompt = ({ site: { base, baseUrl }, mayWrite }: { site: Site; mayWrite: boolean }) => (
  <div class="first">
    <h1>Begin with one task</h1>
    <p class="lead">
      Write down what a developer would ask an agent to do with your tool, and where its documentation is. An agent is
      sent to do it, and you get a graded report: what stood in its way, the events that prove it, what to change first.
    </p>
    {mayWrite && (
      <form method="post" action={`${base}/prompts`}>
        <Field name="title" label="Title" hint="A name for people.">
          <input id="title" name="title" maxLength={200} placeholder="First query" />
        </Field>
        <Field name="text" label="Task" hint="With the address of the documentation.">
          <textarea
            id="text"
            name="text"
            rows={4}
            required
            placeholder="Run a query with the Python SDK and print its rows. Docs: https://docs.acme.example/"
          />
        </Field>
        <Field name="endGoal" label="End goal" hint="What must be true at the end.">
          <textarea id="endGoal" name="endGoal" rows={2} placeholder="Its rows were printed." />
        </Field>
        <button type="submit" class="main">
          Create the prompt
        </button>{" "}
        <a href={`${base}/prompts/new`}>With schedule, variables and more</a>
      </form>
    )}
    <h2>The same with curl</h2>
    <pre class="wrapped">
      <code>{`curl -s ${baseUrl}/api/v1/prompts \\
  -H "Authorization: Bearer $EVALD_KEY" -H "Content-Type: application/json" \\
  -d '{"title": "First query", "text": "Run a query. Docs: https://docs.acme.example/", "endGoal": "Its rows were printed."}'`}</code>
    </pre>
    <p class="hint">
      Then <a href={`${base}/docs/start`}>the first five minutes</a>.
    </p>
  </div>
);
