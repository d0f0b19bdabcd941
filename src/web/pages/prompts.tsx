import type { PromptFilter, PromptLine } from "../../prompts/lists.ts";
import type { Latest } from "../../reports/latest.ts";
import { Layout } from "../layout.tsx";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";
import { When } from "../when.tsx";
import { numberWords, titleOf } from "../words.ts";
import { toQuery } from "./runs.tsx";
import { Change, Score, Trend } from "./score.tsx";

type Props = {
  site: Site;
  viewer: Viewer;
  filter: PromptFilter;
  prompts: { line: PromptLine; latest: Latest | null }[];
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
      <form
        class="toolbar"
        method="get"
        action={here}
        hx-get={here}
        hx-trigger="change, input delay:250ms"
        hx-target="#prompts"
        hx-select="#prompts"
        hx-swap="outerHTML"
        hx-push-url="true"
      >
        <input
          type="search"
          name="search"
          value={search}
          maxLength={200}
          aria-label="Text in a title or a task"
          placeholder="Search titles and tasks"
        />
        <select name="status" aria-label="Status">
          {["", "active", "paused", "archived", "all"].map((each) => (
            <option key={each} value={each} selected={each === (status ?? "")}>
              {each === "" ? "Not archived" : each.charAt(0).toUpperCase() + each.slice(1)}
            </option>
          ))}
        </select>
        <button type="submit">Filter</button>
      </form>
      <div id="prompts">
        {prompts.length > 0 ? (
          <PromptTable {...{ site, prompts, now }} />
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

const PromptTable = ({ site: { base }, prompts, now }: Pick<Props, "site" | "prompts" | "now">) => (
  <table class="list scores">
    <thead>
      <tr>
        <th scope="col">Prompt</th>
        <th scope="col">Score</th>
        <th scope="col">Trend</th>
        <th scope="col">Change</th>
        <th scope="col">Schedule</th>
        <th scope="col" class="number">
          Next
        </th>
      </tr>
    </thead>
    <tbody>
      {prompts.map(({ line, latest }) => (
        <tr key={line.id}>
          <td class="title">
            <a class="plain" href={`${base}/prompts/${line.id}`}>
              {titleOf(line)}
            </a>
            {line.status !== "active" && <span class="pill">{line.status}</span>}
          </td>
          <td>
            <Score latest={latest} base={base} />
          </td>
          <td>
            <Trend latest={latest} title={titleOf(line)} />
          </td>
          <td>
            <Change latest={latest} base={base} />
          </td>
          <td class="soft">{line.frequency ?? "by hand"}</td>
          <td class="number soft">{line.nextSlotAt ? <When at={line.nextSlotAt} now={now} /> : "–"}</td>
        </tr>
      ))}
    </tbody>
  </table>
);
