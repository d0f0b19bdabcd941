import { Type } from "@sinclair/typebox";
import { count, dollars, oneLine } from "../../grading/text.ts";
import type { Inbox } from "../../inbox/schema.ts";
import type { PromptItem } from "../../prompts/lists.ts";
import { titleOf } from "../../reports/labels.ts";
import { Meter } from "../components/charts.tsx";
import { type FirstSteps, FirstStepsList, hasOnlyExample } from "../components/first-steps.tsx";
import { type InboxActions, InboxList } from "../components/inbox.tsx";
import { Layout } from "../components/layout.tsx";
import { SchemaField, SchemaForm } from "../components/schema-form.tsx";
import type { PromptScore } from "../components/score.tsx";
import { When } from "../components/when.tsx";
import { PromptForm } from "../prompt-form.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";
import { ProposalFields, ProposalForm } from "./proposals.tsx";

export type Overview = {
  site: Site;
  now: number;
  inbox: Inbox;
  promptCount: number;
  /** Number of unfinished runs, at most `maxRuns`. */
  activeRuns: number;
  maxRuns: number;
  /** The prompt with the next scheduled run. */
  next: PromptItem | undefined;
  /** null if this viewer can't do anything. */
  actions: InboxActions | null;
  /** Whether to show all problems, including snoozed ones. */
  showsAll: boolean;
};

type Props = Overview & {
  viewer: Viewer;
  /** null if the steps are done or hidden, or if this viewer doesn't see them. */
  steps: FirstSteps | null;
  /** The example, until there is another prompt. */
  examples: PromptScore[];
  /** Whether a run of a new prompt costs nothing, so that no consent is needed. */
  isRunFree: boolean;
};

/** Maximum number of lines that Home shows at first. */
const maxLines = 20;
const maxImprovements = 5;

/**
 * The home page of an organization. It shows what changed and what needs attention, worst first, and updates live. Before the first prompt, it is a
 * form for that prompt.
 */
export const DashboardPage = ({ viewer, steps, isRunFree, ...overview }: Props) => (
  <Layout site={overview.site} viewer={viewer} path="/" title="Home">
    {overview.promptCount === 0 || hasOnlyExample(steps) ? (
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
          <DashboardPart {...overview} viewer={viewer} />
        </div>
      </>
    )}
  </Layout>
);

/** The part of the page that updates live. */
export function DashboardPart(overview: Overview & { viewer: Viewer }) {
  const { site, viewer, inbox, promptCount, activeRuns, maxRuns, next, actions, showsAll, now } = overview;
  const { base } = site;
  const problems = showsAll ? inbox.problems : inbox.problems.slice(0, maxLines);
  const hiddenLines = inbox.problems.length - problems.length + inbox.snoozed;
  return (
    <>
      <p class="summary soft">
        <a href={`${base}/prompts`}>{count(promptCount, "prompt")}</a>
        <a href={`${base}/runs?status=running`}>
          {activeRuns < maxRuns ? count(activeRuns, "run") : `${maxRuns - 1}+ runs`} in progress
        </a>
        {next?.nextEvaluationAt && (
          <span>
            Next: <a href={`${base}/prompts/${next.id}`}>{oneLine(titleOf(next), 60)}</a>{" "}
            <When at={next.nextEvaluationAt} now={now} />
          </span>
        )}
      </p>
      <section aria-labelledby="problems">
        <h2 id="problems">Needs attention</h2>
        {problems.length === 0 ? (
          <p class="muted">Nothing got worse, and nothing fails.</p>
        ) : (
          <InboxList {...{ site, viewer, now, actions }} items={problems} />
        )}
        {hiddenLines > 0 && (
          <p class="hint">
            {count(hiddenLines, "line")} not shown{inbox.snoozed > 0 && `, ${inbox.snoozed} of them snoozed`}.{" "}
            <a href={`${base}/?all=1`}>Show all</a>
          </p>
        )}
      </section>
      {inbox.improvements.length > 0 && (
        <section aria-labelledby="improvements">
          <h2 id="improvements">Got better</h2>
          <InboxList {...{ site, viewer, now }} actions={null} items={inbox.improvements.slice(0, maxImprovements)} />
        </section>
      )}
      <Spending {...{ base, spending: inbox.spending }} />
    </>
  );
}

type SpendingProps = { base: string; spending: Inbox["spending"] };

const Spending = ({ base, spending: { spentUsd, maxUsd, expectedUsd } }: SpendingProps) => (
  <section aria-labelledby="spending">
    <h2 id="spending">
      <a href={`${base}/spending`}>Spending this month</a>
    </h2>
    <p>
      <strong>{dollars(spentUsd)}</strong>
      {maxUsd !== null && ` of ${dollars(maxUsd)}`}
      {expectedUsd !== null && expectedUsd > 0 && <span class="soft"> · {dollars(expectedUsd)} at this pace</span>}
      {maxUsd === null && (
        <>
          {" · "}
          <a class="soft" href={`${base}/settings`}>
            Set a budget
          </a>
        </>
      )}
    </p>
    {maxUsd !== null && <Meter share={Math.min(1, spentUsd / maxUsd)} label="Share of the monthly budget" />}
  </section>
);

/** One form either proposes prompts or creates one. Both start with the URL of the docs. */
const FirstPromptForm = Type.Object({ ...PromptForm.properties, ...ProposalForm.properties });

/** What developers try first with any product. */
const firstPromptValues = new URLSearchParams({
  text: "Follow the getting started guide and complete its first example.",
});

/**
 * Shown if an organization has no prompts of its own: a form for the first prompt, and the API call that does the same. `examples`: the example, if
 * there is one.
 */
const FirstPrompt = ({ site, site: { base, baseUrl }, viewer, examples, steps, isRunFree }: Props) => (
  <div class="first">
    <h1>Test your docs with an agent</h1>
    <p class="lead">
      Enter the URL of your docs. evald proposes tasks from them, or you write one. An agent tries it, and you get a
      graded report: where the agent got stuck, the evidence and what to fix first.
    </p>
    {examples.map(
      ({ prompt, latest }) =>
        latest && (
          <p key={prompt.id}>
            <a href={`${base}/reports/${latest.slug}`}>View an example report</a>
          </p>
        ),
    )}
    {may(viewer, "write") && (
      <SchemaForm schema={FirstPromptForm} values={firstPromptValues} action={`${base}/prompts`}>
        <ProposalFields />
        <p>
          <button type="submit" class="main" formAction={`${base}/prompts/propose`}>
            Propose prompts
          </button>
        </p>
        <h2>Or write one task yourself</h2>
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
        <button type="submit" {...(isRunFree && { name: "do", value: "run" })}>
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
