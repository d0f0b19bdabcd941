import { runStatuses, triggers } from "../../db/tables.ts";
import { line } from "../../grading/words.ts";
import type { PromptLine } from "../../prompts/lists.ts";
import type { RunFilter, RunLine } from "../../runs/lists.ts";
import { Layout } from "../layout.tsx";
import { statusWords, triggerWords } from "../runwords.ts";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { numberWords, titleOf } from "../words.ts";
import { Choice, Filter } from "./choice.tsx";
import { RunTable } from "./status.tsx";

export type RunsShown = {
  site: Site;
  filter: RunFilter;
  before: string | undefined;
  items: RunLine[];
  next: string | null;
  now: number;
};

type Props = RunsShown & { viewer: Viewer; prompts: PromptLine[]; agents: string[]; total: number };

export function toQuery(values: Record<string, string | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value) query.set(name, value);
  return query.size === 0 ? "" : `?${query}`;
}

/** The runs of the organisation, newest first; the first page changes by itself. */
export function RunsPage(props: Props) {
  const { site, viewer, filter, prompts, agents, total, before } = props;
  const here = `${site.base}/runs`;
  const live =
    before === undefined
      ? { "hx-sse:connect": `${here}/live${toQuery({ ...filter, org: viewer.org })}`, "hx-swap": "innerMorph" }
      : {};
  return (
    <Layout site={site} viewer={viewer} path="/runs" title="Runs">
      <header class="toolbar">
        <h1>Runs</h1>
        <span class="muted">{numberWords(total)}</span>
      </header>
      {prompts.length > 0 && (
        <Filter action={here} part="runs">
          <Choice name="promptId" label="Prompt" all="Any prompt" value={filter.promptId}>
            {prompts.map((prompt) => [prompt.id, line(titleOf(prompt), 60)])}
          </Choice>
          <Choice name="status" label="Status" all="Any status" value={filter.status}>
            {runStatuses.map((status) => [status, statusWords[status]])}
          </Choice>
          <Choice name="agent" label="Agent" all="Any agent" value={filter.agent}>
            {agents.map((agent) => [agent, agent])}
          </Choice>
          <Choice name="trigger" label="Asked by" all="Asked for by any" value={filter.trigger}>
            {triggers.map((trigger) => [trigger, triggerWords[trigger]])}
          </Choice>
        </Filter>
      )}
      <div id="runs" {...live}>
        <RunsPart {...props} />
      </div>
    </Layout>
  );
}

/** The part of the page that changes by itself. */
export function RunsPart({ site, filter, before, items, next, now }: RunsShown) {
  const here = `${site.base}/runs`;
  const isFiltered = Object.values(filter).some(Boolean);
  if (items.length === 0)
    return isFiltered || before ? (
      <p class="empty">
        No run matches. <a href={here}>Show all runs</a>
      </p>
    ) : (
      <div class="empty">
        <h2>No run yet</h2>
        <p>
          A run sends an agent to do the task of a prompt, and ends with a report. Open a prompt and choose Run now, or
          give it a schedule.
        </p>
        <p>
          <a class="button main" href={`${site.base}/prompts`}>
            Go to the prompts
          </a>
        </p>
      </div>
    );
  return (
    <>
      <RunTable runs={items} base={site.base} now={now} />
      <nav class="turn" aria-label="Pages">
        {before ? <a href={here + toQuery(filter)}>Newest</a> : <span />}
        {next && <a href={here + toQuery({ ...filter, before: next })}>Older</a>}
      </nav>
    </>
  );
}
