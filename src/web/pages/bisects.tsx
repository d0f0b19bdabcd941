import { type Static, Type } from "@sinclair/typebox";
import { resultText, skipLabels, statusLabels } from "../../bisects/labels.ts";
import { type Bisect, BisectRequest } from "../../bisects/schema.ts";
import { dollars, percent } from "../../grading/text.ts";
import { Fact, List, TimeFacts } from "../components/figures.tsx";
import type { PromptName } from "../components/filter.tsx";
import { ButtonForm, Notices, Submit } from "../components/form-parts.tsx";
import { foreignText, Layout } from "../components/layout.tsx";
import { type ListRange, offsetLinks, Pager, toHref } from "../components/pager.tsx";
import { type FormError, SchemaField, SchemaForm } from "../components/schema-form.tsx";
import { When } from "../components/when.tsx";
import { may, type PageProps } from "../viewer.ts";

const { promptId, urlTemplate, commits, budgetUsd } = BisectRequest.properties;
/** The fields of the form for a new bisect. */
export const BisectForm = Type.Object({ promptId, urlTemplate, commits, budgetUsd });
export type BisectForm = Static<typeof BisectForm>;

const gatesCrumb = { name: "Gates", path: "/gates" };
const bisectsCrumb = { name: "Bisects", path: "/bisects" };

const tones = { running: "running", found: "completed", stopped: "superseded" } as const;

/** The status of a bisect, in the same colors as the status of runs. */
const Status = ({ status }: { status: Bisect["status"] }) => (
  <span class={`status-mark run-${tones[status]}`} data-status={status}>
    {statusLabels[status]}
  </span>
);

type NewProps = PageProps & {
  prompts: (readonly [id: string, title: string])[];
  values: URLSearchParams;
  formError?: FormError | undefined;
  errorMessage?: string | undefined;
};

/** The form of a new bisect. */
export function NewBisectPage({ site, viewer, prompts, values, formError, errorMessage }: NewProps) {
  const crumbs = [gatesCrumb, bisectsCrumb, { name: "Find a commit" }];
  return (
    <Layout {...{ site, viewer, crumbs }} path="/bisects/new" title="Find a commit">
      <h1>Find a commit</h1>
      <p class="lead">
        evald runs the prompt against the docs of a few commits between a good and a bad one, until it knows with which
        commit the score changed.
      </p>
      <Notices errorMessage={formError?.field ? undefined : errorMessage} />
      {prompts.length === 0 ? (
        <p class="empty">
          A bisect needs a prompt. <a href={`${site.base}/prompts/new`}>Create a prompt</a>
        </p>
      ) : (
        may(viewer, "run") && (
          <SchemaForm
            schema={BisectForm}
            values={values}
            formError={formError ?? null}
            action={`${site.base}/bisects/new`}
            class="narrow"
          >
            <SchemaField name="promptId" label="Prompt" options={prompts} />
            <SchemaField
              name="urlTemplate"
              label="URL of the docs built from a commit"
              hint="{commit} stands for the commit."
              placeholder="https://{commit}.preview.acme.example"
            />
            <SchemaField
              name="commits"
              label="Commits, one per line, oldest first"
              hint={
                <>
                  From the good commit to the bad one:{" "}
                  <code>git log --reverse --first-parent --format=%H GOOD^..BAD</code>
                </>
              }
              rows={8}
            />
            <SchemaField
              name="budgetUsd"
              label="Budget in USD (optional)"
              hint="Runs that would exceed it are not started."
            />
            <div class="acts">
              <Submit>Find the commit</Submit>
            </div>
          </SchemaForm>
        )
      )}
    </Layout>
  );
}

type ListProps = PageProps & ListRange & { bisects: Bisect[]; prompts: PromptName[]; now: number };

const titleFrom = (prompts: PromptName[], id: string): string =>
  prompts.find((prompt) => prompt.id === id)?.title ?? "Archived prompt";

/** Bisects of the organization, newest first. */
export function BisectsPage({ site, viewer, bisects, prompts, total, offset, perPage, now }: ListProps) {
  const here = `${site.base}/bisects`;
  return (
    <Layout {...{ site, viewer }} path="/bisects" title="Bisects" crumbs={[gatesCrumb, { name: "Bisects" }]}>
      <div class="toolbar">
        <h1>Bisects</h1>
        {may(viewer, "run") && (
          <span class="end">
            <a class="button main" href={`${here}/new`}>
              Find a commit
            </a>
          </span>
        )}
      </div>
      {bisects.length === 0 ? (
        <div class="empty">
          <h2>No bisects yet</h2>
          <p>
            A bisect finds the commit with which the score of a prompt changed.{" "}
            <a href={`${site.base}/docs/gates#find-the-commit`}>How it works</a>
          </p>
        </div>
      ) : (
        <List label="Bisects" isStacked labels={["Status", "Prompt", "Result"]} numbers={["Created"]}>
          {bisects.map((bisect) => (
            <tr key={bisect.id}>
              <td>
                <Status status={bisect.status} />
              </td>
              <td>
                <a class="plain" href={`${here}/${bisect.id}`} {...foreignText}>
                  {titleFrom(prompts, bisect.promptId)}
                </a>
              </td>
              <td class="soft" data-label="Result">
                {resultText(bisect)}
              </td>
              <td class="number soft" data-label="Created">
                <When at={bisect.createdAt} now={now} />
              </td>
            </tr>
          ))}
        </List>
      )}
      <Pager links={offsetLinks({ offset, perPage, total, toPage: (offset) => toHref(here, { offset }) })} />
    </Layout>
  );
}

type Props = PageProps & { bisect: Bisect; title: string; now: number };

/** A bisect: its result, the probability of each commit, and the builds that were tried. */
export function BisectPage({ site, site: { base }, viewer, bisect, title, now }: Props) {
  const { id, status, builds, commits, progress, urlTemplate, spentUsd, budgetUsd, promptId } = bisect;
  const tone = status === "found" ? "notice good" : "notice";
  return (
    <Layout
      {...{ site, viewer }}
      path={`/bisects/${id}`}
      title={`Bisect: ${title}`}
      refreshSeconds={status === "running" ? 10 : undefined}
      crumbs={[gatesCrumb, bisectsCrumb, { name: title }]}
    >
      <header class="toolbar">
        <h1 {...foreignText}>{title}</h1>
        <Status status={status} />
        {status === "running" && may(viewer, "run") && (
          <ButtonForm action={`${base}/bisects/${id}/cancel`}>Cancel bisect</ButtonForm>
        )}
      </header>
      <p class={tone} {...foreignText}>
        {resultText(bisect)}
        {status === "running" && ` ${progress.ended} of ${progress.of} runs finished.`}
      </p>
      {builds.some(({ skipped }) => skipped === null) && (
        <>
          <h2>Where the change is</h2>
          <Posterior bisect={bisect} />
        </>
      )}
      <h2>Builds</h2>
      <List label="Builds" isStacked labels={["Step", "Commit", "Scores"]} numbers={["Has the change"]}>
        {builds.map(({ commit, scores, changed, skipped, evalRequestId }, i) => (
          <tr key={commit}>
            <td data-label="Step">{i + 1}</td>
            <th scope="row" {...foreignText}>
              {evalRequestId === null ? commit : <a href={`${base}/evals/${evalRequestId}`}>{commit}</a>}{" "}
              <small>{placeOf(commit, commits)}</small>
            </th>
            <td data-label="Scores">
              {skipped === null
                ? scores.map((score) => score.toFixed(1)).join(", ")
                : `Skipped: ${skipLabels[skipped]}`}
            </td>
            <td class="number" data-label="Has the change">
              {changed === null ? "–" : percent(changed)}
            </td>
          </tr>
        ))}
      </List>
      <h2>Details</h2>
      <dl class="facts">
        <TimeFacts createdAt={bisect.createdAt} completedAt={bisect.completedAt} now={now} />
        <Fact name="Prompt">
          <a href={`${base}/prompts/${promptId}`}>{title}</a>
        </Fact>
        <Fact name="Commits">{commits.length}</Fact>
        <Fact name="URL of docs">
          <span {...foreignText}>{urlTemplate}</span>
        </Fact>
        <Fact name="Cost">{spentUsd === null ? "Unknown" : dollars(spentUsd)}</Fact>
        {budgetUsd !== null && <Fact name="Budget">{dollars(budgetUsd)}</Fact>}
      </dl>
      <p class="muted">
        These runs count in no trend. <a href={`${base}/docs/gates#find-the-commit`}>How a bisect works</a>
      </p>
    </Layout>
  );
}

function placeOf(commit: string, commits: string[]): string {
  if (commit === commits[0]) return "Good";
  return commit === commits.at(-1) ? "Bad" : String(commits.indexOf(commit));
}

const [chartWidth, chartHeight] = [600, 90];

/** The probability that a commit is the first with the change, for each commit, oldest first. The table below lists the commits that were tried. */
function Posterior({ bisect: { posterior, commits, builds } }: { bisect: Bisect }) {
  // The first commit is known to be good, so it can't be the cause.
  const candidates = commits.slice(1).map((commit, i) => ({ commit, probability: posterior[i + 1] ?? 0 }));
  const [best] = candidates.toSorted((a, b) => b.probability - a.probability);
  const highest = Math.max(best?.probability ?? 0, 0.01);
  const triedCommits = new Set(builds.filter(({ skipped }) => skipped === null).map(({ commit }) => commit));
  const step = chartWidth / candidates.length;
  // With many commits, the gap between their bars is less than 2.
  const gap = Math.min(2, step / 4);
  return (
    <>
      <svg class="posterior" viewBox={`0 0 ${chartWidth} ${chartHeight + 8}`} role="img" preserveAspectRatio="none">
        <title>
          {`Most probable: ${best?.commit}, ${percent(best?.probability ?? 0)}. ${triedCommits.size} of ${commits.length} builds were run.`}
        </title>
        {candidates.map((candidate, i) => {
          const barHeight = (candidate.probability / highest) * chartHeight;
          return (
            <rect
              key={candidate.commit}
              class={candidate === best ? "best" : undefined}
              x={i * step + gap / 2}
              width={Math.max(1, step - gap)}
              y={chartHeight - barHeight}
              height={Math.max(candidate.probability > 0 ? 1 : 0, barHeight)}
            />
          );
        })}
        {candidates.map(
          ({ commit }, i) =>
            triedCommits.has(commit) && (
              <rect key={commit} class="tried" x={i * step} width={Math.max(2, step)} y={chartHeight + 3} height="4" />
            ),
        )}
      </svg>
      <p class="soft">
        Probability of each commit, from {commits[1]?.slice(0, 12)} on the left to {commits.at(-1)?.slice(0, 12)} on the
        right. The line below marks the builds that were run.
      </p>
    </>
  );
}
