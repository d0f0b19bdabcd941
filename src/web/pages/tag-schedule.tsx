import type { TagScheduleResult } from "../../schedules/schema.ts";
import { Layout } from "../components/layout.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

type Props = {
  site: Site;
  viewer: Viewer;
  tags: string[];
  draft: { tag?: string; frequency?: string };
  done?: TagScheduleResult;
  wrong?: string;
};

const count = (n: number) => `${n} ${n === 1 ? "prompt" : "prompts"}`;

/** A form that sets the schedule of all prompts with a tag. */
export const TagSchedulePage = ({ site, site: { base }, viewer, tags, draft, done, wrong }: Props) => (
  <Layout
    {...{ site, viewer }}
    path="/prompts/schedule"
    title="Schedule prompts by tag"
    crumbs={[{ name: "Prompts", path: "/prompts" }, { name: "Schedule by tag" }]}
  >
    <h1>Schedule prompts by tag</h1>
    {done && (
      <div class="notice good" role="status">
        <p>
          Schedule of {count(done.scheduled)} saved.
          {done.skipped > 0 && ` ${count(done.skipped)} skipped:`}
        </p>
        {done.problems.length > 0 && (
          <ul>
            {done.problems.map(({ promptId, detail }) => (
              <li key={promptId}>
                <a href={`${base}/prompts/${promptId}`}>{promptId}</a>: {detail}
              </li>
            ))}
          </ul>
        )}
      </div>
    )}
    {wrong && (
      <p class="notice bad" role="alert">
        {wrong}
      </p>
    )}
    {tags.length === 0 ? (
      <p class="muted">No prompt has a tag yet. Add tags when you edit a prompt.</p>
    ) : (
      <form method="post" action={`${base}/prompts/schedule`} class="narrow">
        <p class="field">
          <label>
            Tag
            <select name="tag">
              {tags.map((each) => (
                <option key={each} value={each} selected={each === draft.tag}>
                  {each}
                </option>
              ))}
            </select>
          </label>
        </p>
        <p class="field">
          <label>
            Frequency
            <input
              name="frequency"
              value={draft.frequency ?? ""}
              maxLength={200}
              placeholder="daily"
              aria-describedby="frequency-hint"
            />
          </label>
          <span class="hint" id="frequency-hint">
            <code>hourly</code>, <code>daily</code>, <code>weekly</code>, <code>monthly</code>, or a cron expression
            such as <code>0 6 * * 1-5</code>. Leave it blank to remove the schedules. Each prompt keeps its number of
            runs.
          </span>
        </p>
        <button class="main" type="submit">
          Save schedules
        </button>
      </form>
    )}
  </Layout>
);
