import type { Archive } from "../../archives/schema.ts";
import { capitalize, oneLine } from "../../grading/text.ts";
import type { AgentInfo } from "../../prompts/agent-schema.ts";
import { weekdays } from "../../prompts/frequency.ts";
import { untestedScopes } from "../../prompts/schema.ts";
import type { Provider } from "../../providers/schema.ts";
import { scopeLabels } from "../../reports/labels.ts";
import { Checks } from "../components/check-fields.tsx";
import { List } from "../components/figures.tsx";
import { Notices, Submit } from "../components/form-parts.tsx";
import { Layout } from "../components/layout.tsx";
import {
  DerivedFields,
  type DerivedValues,
  FurtherAgents,
  LimitFields,
  Urls,
  WorkspaceFields,
} from "../components/prompt-fields.tsx";
import {
  CheckField,
  errorMessageAt,
  FieldError,
  type FormError,
  SchemaField,
  SchemaForm,
} from "../components/schema-form.tsx";
import { type Difference, frequencyPresets, PromptForm, timedFrequencies } from "../prompt-form.ts";
import { catchUpLabels, overlapLabels } from "../schedule-labels.ts";
import type { Site } from "../site.ts";
import type { PageProps } from "../viewer.ts";

/** Whether the form has a schedule policy that isn't the default. */
const hasPolicy = (values: URLSearchParams): boolean =>
  (values.get("catchUp") ?? "automatic") !== "automatic" || (values.get("overlap") ?? "skip") !== "skip";

type Props = PageProps & {
  /** null for a new prompt. `seen`: fingerprint of the prompt at the time when the form was opened. */
  prompt: { id: string; title: string; seen: string } | null;
  /** ID of the prompt that the form will create. */
  id: string;
  /** Query of the form's action. */
  query: string;
  values: URLSearchParams;
  derived: DerivedValues;
  providers: Provider[];
  archives: Archive[];
  agents: AgentInfo[];
  defaultAgent: string;
  /** A hint that lists the available models. */
  modelHint: string;
  /** Whether agents run on workers. */
  hasWorkers: boolean;
  formError: FormError | null;
  /** Fields that somebody else changed after the form was opened. */
  conflicts?: Difference[] | undefined;
};

/** The list of weekdays starts with Sunday, as in cron. */
const weekdaysFromMonday = [...weekdays.slice(1), weekdays[0]];

/** The name of a field in words. "workspace.setup" becomes "Workspace setup". */
const toFieldName = (field: string) =>
  field === "text"
    ? "Task"
    : capitalize(field.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).replaceAll(".", " "));

const Conflicts = ({ conflicts }: { conflicts: Difference[] }) => (
  <section class="conflicts">
    <List label="Differences" labels={["Field", "Their version", "Yours"]}>
      {conflicts.map(({ field, stored, typed }) => (
        <tr key={field} data-field={field}>
          <th scope="row">{toFieldName(field)}</th>
          {Object.entries({ stored, typed }).map(([version, value]) => (
            <td key={version} class="prose" dir="auto">
              {value === "" ? <span class="muted">None</span> : value}
            </td>
          ))}
        </tr>
      ))}
    </List>
  </section>
);

/** Attributes of a field that other fields are derived from. If the field changes, the derived fields are updated. */
const toUpdateAttributes = (site: Site) => ({
  "hx-post": `${site.base}/prompts/derived-fields`,
  "hx-trigger": "input changed delay:300ms",
  "hx-target": "#derived-fields",
  "hx-swap": "innerMorph",
  "hx-include": "closest form",
  // This encoding leaves out the files.
  "hx-encoding": "application/x-www-form-urlencoded",
});

type UpdateProps = { updateDerivedFields: ReturnType<typeof toUpdateAttributes> };

/** The form to create or edit a prompt, with errors next to the fields. */
export function PromptFormPage(props: Props) {
  const { site, viewer, prompt, id, query, values, hasWorkers, formError, conflicts = [] } = props;
  const path = prompt ? `/prompts/${prompt.id}/edit` : "/prompts/new";
  const action = site.base + (prompt ? `/prompts/${prompt.id}/edit` : "/prompts") + query;
  const updateDerivedFields = toUpdateAttributes(site);
  return (
    <Layout
      {...{ site, viewer }}
      path={path}
      title={prompt ? `Edit: ${prompt.title}` : "New prompt"}
      crumbs={[
        { name: "Prompts", path: "/prompts" },
        ...(prompt
          ? [{ name: oneLine(prompt.title, 60), path: `/prompts/${prompt.id}` }, { name: "Edit" }]
          : [{ name: "New" }]),
      ]}
    >
      <h1>{prompt ? "Edit prompt" : "New prompt"}</h1>
      {formError && (
        <Notices
          errorMessage={formError.field === "" ? formError.message : "Couldn’t save. Fix the highlighted field."}
        />
      )}
      {conflicts.length > 0 && <Conflicts conflicts={conflicts} />}
      <SchemaForm
        {...{ schema: PromptForm, values, formError, action }}
        enctype="multipart/form-data"
        class="prompt-form"
      >
        <input type="hidden" name="id" value={id} />
        {prompt && <input type="hidden" name="seen" value={prompt.seen} />}
        <TaskFields updateDerivedFields={updateDerivedFields} />
        <div>
          <ScheduleFields {...{ ...props, updateDerivedFields }} />
          <div id="derived-fields" aria-live="polite">
            <DerivedFields
              {...{ values, derived: props.derived }}
              errorMessage={errorMessageAt({ formError }, "templateDefaults")}
            />
          </div>
          <AgentAndTarget {...props} />
          <WorkspaceFields archives={props.archives} />
          <LimitFields />
          <SchemaField
            name="tags"
            label="Tags"
            hint="Separated by commas. Use them to filter prompts and to gate several at once."
            placeholder="quickstart, sdk"
          />
          {(hasWorkers || values.get("workerLabels")) && (
            <SchemaField
              name="workerLabels"
              label="Worker labels"
              hint="Separated by commas. Only workers with all of them run this prompt."
              placeholder="gpu, eu"
            />
          )}
          <CiAndPublishing />
        </div>
        <footer class="toolbar">
          <Submit>{prompt ? "Save prompt" : "Create prompt"}</Submit>
          {!prompt && (
            <button type="submit" name="do" value="run">
              Create and run
            </button>
          )}
          <button type="submit" name="do" value="preview" formNoValidate>
            Preview
          </button>
          <a href={site.base + (prompt ? `/prompts/${prompt.id}` : "/prompts")}>Cancel</a>
        </footer>
      </SchemaForm>
    </Layout>
  );
}

/** Fields for the task, the end goal, the URLs and the success checks. */
const TaskFields = ({ updateDerivedFields }: UpdateProps) => (
  <div>
    <SchemaField
      name="docsUrl"
      label="Docs URL"
      hint="Where the agent starts. Leave it blank if you choose a provider that has one."
      placeholder="https://docs.acme.example/"
    />
    <SchemaField name="title" label="Title" hint="Shown in lists and reports." placeholder="First query" />
    <SchemaField
      name="text"
      label="Task"
      hint={
        <>
          What a developer would ask the agent to do. Write <code>{"{{name}}"}</code> for a variable.
        </>
      }
      rows={8}
      required
      placeholder="Run a query with the {{language}} SDK and print its rows."
      {...updateDerivedFields}
    />
    <SchemaField
      name="endGoal"
      label="End goal"
      hint="What must be true when the agent is done. The judge checks each part separately."
      rows={4}
      placeholder="The SDK was installed. The rows of the query were printed."
      {...updateDerivedFields}
    />
    <SchemaField
      name="wordings"
      label="Other wordings of the end goal"
      hint="One per line. The explorer compares what each of them finds in the docs."
      rows={3}
      placeholder="The results of a database query were displayed."
    />
    <Urls />
    <Checks />
  </div>
);

/** Fields for when and how often a prompt runs, and what happens if it can't run. */
const ScheduleFields = ({ values, updateDerivedFields }: UpdateProps & Props) => (
  <fieldset>
    <legend>Schedule</legend>
    <SchemaField
      name="frequency"
      label="Frequency"
      options={[
        ["", "Manual"],
        ...frequencyPresets.map((preset) => [preset, capitalize(preset)] as const),
        ...Object.entries(timedFrequencies),
        ["cron", "Custom (cron)"],
      ]}
      {...updateDerivedFields}
      hx-trigger="change"
    />
    <div class="time-of-day columns">
      <div class="weekday">
        <SchemaField
          name="weekday"
          label="Day"
          options={weekdaysFromMonday.map((day) => [day, capitalize(day)] as const)}
          {...updateDerivedFields}
          hx-trigger="change"
        />
      </div>
      <SchemaField name="time" label="Time" type="time" {...updateDerivedFields} hx-trigger="change" />
    </div>
    <div class="cron">
      <SchemaField
        name="cron"
        label="Cron expression"
        hint="Minute, hour, day of month, month, day of week. Used when the frequency is Custom (cron)."
        placeholder="0 6 * * 1-5"
        {...updateDerivedFields}
      />
    </div>
    <SchemaField
      name="runsPerEval"
      label="Runs per evaluation"
      hint="Use 4 or more to get statistically meaningful comparisons."
      placeholder="1"
    />
    <details class="more" open={hasPolicy(values)}>
      <summary>Downtime and overlaps</summary>
      <SchemaField name="catchUp" label="If the service misses an evaluation" options={catchUpLabels} />
      <div class="catch-up-hours">
        <SchemaField name="catchUpHours" label="Hours" placeholder="24" />
      </div>
      <SchemaField name="overlap" label="If the previous evaluation is still running" options={overlapLabels} />
    </details>
  </fieldset>
);

function AgentAndTarget({ providers, agents, defaultAgent, modelHint }: Props) {
  const unavailable = agents.filter(({ objection }) => objection !== null);
  return (
    <fieldset>
      <legend>Agent and target</legend>
      <SchemaField
        name="targetProviderId"
        label="Provider"
        hint="The product you’re testing. Runs start at its docs URL."
        options={[["", "None"], ...providers.map(({ id, name }) => [id, name] as const)]}
      />
      <SchemaField
        name="agent"
        label="Agent"
        options={[
          ["", `Default (${defaultAgent})`],
          ...agents.map(
            ({ id, objection }) => [id, objection === null ? id : `${id} (unavailable)`, objection !== null] as const,
          ),
        ]}
      />
      {unavailable.length > 0 && (
        <details class="hint">
          <summary>Unavailable: {unavailable.map(({ id }) => id).join(", ")}</summary>
          <ul>
            {unavailable.map(({ id, objection }) => (
              <li key={id}>
                <strong>{id}</strong>: {objection}
              </li>
            ))}
          </ul>
        </details>
      )}
      <SchemaField name="model" label="Model" hint={modelHint} placeholder="provider/model" />
      <FurtherAgents agents={agents} />
    </fieldset>
  );
}

/** Fields for what CI does with the runs of a prompt, and who sees the results. */
const CiAndPublishing = () => (
  <>
    <fieldset>
      <legend>CI</legend>
      <div class="pairs">
        <SchemaField
          name="successBar.scope"
          label="Success without a tested goal"
          options={[["", "Never"], ...untestedScopes.map((scope) => [scope, `${scopeLabels[scope]} score`] as const)]}
        />
        <SchemaField name="successBar.minScore" label="Minimum score" placeholder="80" />
      </div>
      <FieldError name="successBar" />
      <p class="hint">
        Counts a run as a success if its goal wasn’t tested but its score is at least this. Only for clients that look
        at nothing but the outcome, such as a CI job.
      </p>
      <CheckField name="supersedesByDefault">New API runs replace unfinished runs of the same preview</CheckField>
    </fieldset>
    <fieldset>
      <legend>Publishing</legend>
      <CheckField name="reviewBeforePublishing">Save reports as drafts until reviewed</CheckField>
      <CheckField name="hasPublicBadge">Show a badge with the latest score to everyone with its URL</CheckField>
      <CheckField name="isOnResultsPage">List it on the public results page, if the organization has one</CheckField>
    </fieldset>
  </>
);
