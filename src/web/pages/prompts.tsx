import type { PromptFilter } from "../../prompts/lists.ts";
import { Layout } from "../layout.tsx";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";
import { When } from "../when.tsx";
import { numberWords } from "../words.ts";
import { Choice, Filter } from "./choice.tsx";
import { toQuery } from "./runs.tsx";
import { ScoreTable, type Standing } from "./score.tsx";

type Props = {
  site: Site;
  viewer: Viewer;
  filter: PromptFilter;
  prompts: Standing[];
  total: number;
  offset: number;
  perPage: number;
  now: number;
};

/** The prompts of the organisation, newest first. */
export function PromptsPage({ site, viewer, filter, prompts, total, offset, perPage, now }: Props) {
  const here = `${site.base}/prompts`;
  const { search, status } = filter;
  const isFiltered = Boolean(search || status);
  const toPage = (at: number) => here + toQuery({ search, status, offset: at > 0 ? String(at) : undefined });
  return (
    <Layout site={site} viewer={viewer} path="/prompts" title="Prompts">
      <header class="toolbar">
        <h1>Prompts</h1>
        <span class="muted">{numberWords(total)}</span>
        {may(viewer, "write") && (
          <span class="end">
            <a class="button main" href={`${here}/new`}>
              New prompt
            </a>
          </span>
        )}
      </header>
      {(isFiltered || total > 0) && (
        <Filter action={here} part="prompts" trigger="change, input delay:250ms">
          <input
            type="search"
            name="search"
            value={search}
            maxLength={200}
            aria-label="Text in a title or a task"
            placeholder="Search titles and tasks"
          />
          <Choice name="status" label="Status" all="Not archived" value={status}>
            {["active", "paused", "archived", "all"].map((each) => [
              each,
              each.charAt(0).toUpperCase() + each.slice(1),
            ])}
          </Choice>
        </Filter>
      )}
      <div id="prompts">
        {prompts.length > 0 ? (
          <ScoreTable
            base={site.base}
            prompts={prompts}
            words={["Schedule"]}
            numbers={["Next"]}
            cells={({ line: { frequency, nextSlotAt } }) => (
              <>
                <td class="soft">{frequency ?? "by hand"}</td>
                <td class="number soft">{nextSlotAt ? <When at={nextSlotAt} now={now} /> : "–"}</td>
              </>
            )}
          />
        ) : isFiltered || offset > 0 ? (
          <p class="empty">
            No prompt matches. <a href={here}>Show all prompts</a>
          </p>
        ) : (
          <div class="empty">
            <h2>No prompt yet</h2>
            <p>
              A prompt is a task with an end goal: what a developer would ask an agent to do with your tool. It is run
              by hand, by a program or by a schedule.
            </p>
            {may(viewer, "write") && (
              <p>
                <a class="button main" href={`${here}/new`}>
                  Write the first prompt
                </a>
              </p>
            )}
          </div>
        )}
        <nav class="turn" aria-label="Pages">
          {offset > 0 ? <a href={toPage(offset - perPage)}>Newer</a> : <span />}
          {offset + perPage < total && <a href={toPage(offset + perPage)}>Older</a>}
        </nav>
      </div>
    </Layout>
  );
}
