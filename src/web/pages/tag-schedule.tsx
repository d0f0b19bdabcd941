import { count } from "../../grading/text.ts";
import { TagSchedule, type TagScheduleResult } from "../../schedules/schema.ts";
import { Notices, Submit } from "../components/form-parts.tsx";
import { Layout } from "../components/layout.tsx";
import { SchemaField, SchemaForm } from "../components/schema-form.tsx";
import type { PageProps } from "../viewer.ts";

type Props = PageProps & {
  tags: string[];
  values: URLSearchParams;
  result?: TagScheduleResult;
  errorMessage?: string;
};

/** A form that sets the schedule of all prompts with a tag. */
export const TagSchedulePage = ({ site, site: { base }, viewer, tags, values, result, errorMessage }: Props) => (
  <Layout
    {...{ site, viewer }}
    path="/prompts/schedule"
    title="Schedule prompts by tag"
    crumbs={[{ name: "Prompts", path: "/prompts" }, { name: "Schedule by tag" }]}
  >
    <h1>Schedule prompts by tag</h1>
    {result && (
      <div class="notice good" role="status">
        <p>
          Schedule of {count(result.scheduled, "prompt")} saved.
          {result.skipped > 0 && ` ${count(result.skipped, "prompt")} skipped:`}
        </p>
        {result.problems.length > 0 && (
          <ul>
            {result.problems.map(({ promptId, detail }) => (
              <li key={promptId}>
                <a href={`${base}/prompts/${promptId}`}>{promptId}</a>: {detail}
              </li>
            ))}
          </ul>
        )}
      </div>
    )}
    <Notices errorMessage={errorMessage} />
    {tags.length === 0 ? (
      <p class="muted">No prompt has a tag yet. Add tags when you edit a prompt.</p>
    ) : (
      <SchemaForm {...{ schema: TagSchedule, values }} action={`${base}/prompts/schedule`} class="narrow">
        <SchemaField name="tag" label="Tag" options={tags.map((tag) => [tag, tag] as const)} />
        <SchemaField
          name="frequency"
          label="Frequency"
          placeholder="daily"
          hint={
            <>
              <code>hourly</code>, <code>daily</code>, <code>weekly</code>, <code>monthly</code>, or a cron expression
              such as <code>0 6 * * 1-5</code>. Leave it blank to remove the schedules. Each prompt keeps its number of
              runs.
            </>
          }
        />
        <Submit>Save schedules</Submit>
      </SchemaForm>
    )}
  </Layout>
);
