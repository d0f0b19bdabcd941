import type { Archive } from "../../archives/schema.ts";
import { line } from "../../grading/text.ts";
import type { Provider } from "../../providers/schema.ts";
import { capitalize } from "../../reports/labels.ts";
import { controlProps, Field } from "../components/field.tsx";
import { Layout } from "../components/layout.tsx";
import {
  Checks,
  FurtherAgents,
  LabelFields,
  LimitFields,
  type Preview,
  PreviewPart,
  Urls,
} from "../components/prompt-fields.tsx";
import { ResultFields } from "../components/result-fields.tsx";
import { WorkspaceFields } from "../components/workspace-fields.tsx";
import { type Draft, presets } from "../prompt-draft.ts";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

type Choice = { id: string; hasModel: boolean; objection: string | null };

export type PromptFormProps = {
  site: Site;
  viewer: Viewer;
  /** null: a new prompt. `seen`: fingerprint of the prompt when the form was opened. */
  prompt: { id: string; title: string; seen: string } | null;
  /** Id of the prompt that the form creates. */
  id: string;
  /** Query of the form's action. */
  query: string;
  draft: Draft;
  preview: Preview;
  providers: Provider[];
  archives: Archive[];
  agents: Choice[];
  defaultAgent: string;
  /** Hint that lists the available models. */
  models: string;
  /** Whether workers run the agents. */
  hasWorkers: boolean;
  fault: { field: string; message: string } | null;
};

/** Form to create or edit a prompt, with errors next to their fields. */
export function PromptFormPage(props: PromptFormProps) {
  const { site, viewer, prompt, id, query, draft, preview, hasWorkers, fault } = props;
  const path = prompt ? `/prompts/${prompt.id}/edit` : "/prompts/new";
  const action = site.base + (prompt ? `/prompts/${prompt.id}/edit` : "/prompts") + query;
  const wrong = (field: string) => (fault?.field === field ? fault.message : undefined);
  const live = {
    "hx-post": `${site.base}/prompts/preview`,
    "hx-trigger": "input changed delay:300ms",
    "hx-target": "#preview",
    "hx-swap": "innerMorph",
    "hx-include": "closest form",
    // Without the files.
    "hx-encoding": "application/x-www-form-urlencoded",
  };
  return (
    <Layout
      site={site}
      viewer={viewer}
      path={path}
      title={prompt ? `Edit: ${prompt.title}` : "New prompt"}
      crumbs={[
        { name: "Prompts", path: "/prompts" },
        ...(prompt
          ? [{ name: line(prompt.title, 60), path: `/prompts/${prompt.id}` }, { name: "Edit" }]
          : [{ name: "New" }]),
      ]}
    >
      <h1>{prompt ? "Edit prompt" : "New prompt"}</h1>
      {fault && (
        <p class="notice bad" role="alert">
          {fault.field === "" ? fault.message : "Couldn’t save. Fix the highlighted field."}
        </p>
      )}
      <form method="post" action={action} enctype="multipart/form-data" class="prompt-form">
        <input type="hidden" name="id" value={id} />
        {prompt && <input type="hidden" name="seen" value={prompt.seen} />}
        <div>
          <Field
            name="docsUrl"
            label="Docs URL"
            hint="Where the agent starts. Leave it blank if you choose a provider that has one."
            wrong={wrong("docsUrl")}
          >
            <input
              {...controlProps("docsUrl", wrong("docsUrl"))}
              type="url"
              value={draft.docsUrl}
              maxLength={2000}
              placeholder="https://docs.acme.example/"
            />
          </Field>
          <Field name="title" label="Title" hint="Shown in lists and reports." wrong={wrong("title")}>
            <input
              {...controlProps("title", wrong("title"))}
              value={draft.title}
              maxLength={200}
              placeholder="First query"
            />
          </Field>
          <Field
            name="text"
            label="Task"
            hint={
              <>
                What a developer would ask the agent to do. Write <code>{"{{name}}"}</code> for a variable.
              </>
            }
            wrong={wrong("text")}
          >
            <textarea
              {...controlProps("text", wrong("text"))}
              rows={8}
              required
              placeholder="Run a query with the {{language}} SDK and print its rows."
              {...live}
            >
              {draft.text}
            </textarea>
          </Field>
          <Field
            name="endGoal"
            label="End goal"
            hint="What must be true when the agent is done. The judge checks each part separately."
            wrong={wrong("endGoal")}
          >
            <textarea
              {...controlProps("endGoal", wrong("endGoal"))}
              rows={4}
              placeholder="The SDK was installed. The rows of the query were printed."
              {...live}
            >
              {draft.endGoal}
            </textarea>
          </Field>
          <Field
            name="wordings"
            label="Other wordings of the end goal"
            hint="One per line. The explorer compares what each of them finds in the docs."
            wrong={wrong("wordings")}
          >
            <textarea
              {...controlProps("wordings", wrong("wordings"))}
              rows={3}
              placeholder="The results of a database query were displayed."
            >
              {draft.wordings}
            </textarea>
          </Field>
          <Urls rows={draft.urls} wrong={wrong("additionalUrls")} />
          <Checks rows={draft.checks} wrong={wrong("declaredChecks")} />
        </div>
        <div>
          <Schedule draft={draft} wrong={wrong} live={live} />
          <div id="preview" aria-live="polite">
            <PreviewPart draft={draft} preview={preview} wrong={wrong("templateDefaults")} />
          </div>
          <Target {...props} wrong={wrong} />
          <WorkspaceFields workspace={draft.workspace} archives={props.archives} wrong={wrong("workspace")} />
          <LimitFields limits={draft.limits} wrong={wrong("limits")} />
          <LabelFields draft={draft} hasWorkers={hasWorkers} wrong={wrong} />
          <ResultFields draft={draft} wrong={wrong("successBar")} />
        </div>
        <footer class="toolbar">
          <button type="submit" class="main">
            {prompt ? "Save prompt" : "Create prompt"}
          </button>
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
      </form>
    </Layout>
  );
}

type Wrong = (field: string) => string | undefined;

const Schedule = ({ draft, wrong, live }: { draft: Draft; wrong: Wrong; live: Record<string, string> }) => (
  <fieldset>
    <legend>Schedule</legend>
    <Field name="frequency" label="Frequency" wrong={draft.frequency === "cron" ? undefined : wrong("frequency")}>
      <select {...controlProps("frequency", wrong("frequency"))} {...live} hx-trigger="change">
        <option value="">Manual</option>
        {presets.map((preset) => (
          <option key={preset} value={preset} selected={draft.frequency === preset}>
            {capitalize(preset)}
          </option>
        ))}
        <option value="cron" selected={draft.frequency === "cron"}>
          Custom (cron)
        </option>
      </select>
    </Field>
    <div class="cron">
      <Field
        name="cron"
        label="Cron expression"
        hint="Minute, hour, day of month, month, day of week. Used when the frequency is Custom (cron)."
        wrong={draft.frequency === "cron" ? wrong("frequency") : undefined}
      >
        <input
          {...controlProps("cron", draft.frequency === "cron" ? wrong("frequency") : undefined)}
          value={draft.cron}
          placeholder="0 6 * * 1-5"
          maxLength={200}
          {...live}
        />
      </Field>
    </div>
    <Field
      name="runsPerEval"
      label="Runs per evaluation"
      hint="Use 4 or more to get statistically meaningful comparisons."
      wrong={wrong("runsPerEval")}
    >
      <input
        {...controlProps("runsPerEval", wrong("runsPerEval"))}
        type="number"
        min="1"
        max="50"
        value={draft.runsPerEval}
        placeholder="1"
      />
    </Field>
  </fieldset>
);

function Target({ draft, providers, agents, defaultAgent, models, wrong }: PromptFormProps & { wrong: Wrong }) {
  const missing = agents.filter(({ objection }) => objection !== null);
  return (
    <fieldset>
      <legend>Agent and target</legend>
      <Field
        name="targetProviderId"
        label="Provider"
        hint="The product you’re testing. Runs start at its docs URL."
        wrong={wrong("targetProviderId")}
      >
        <select {...controlProps("targetProviderId", wrong("targetProviderId"))}>
          <option value="">None</option>
          {providers.map(({ id, name }) => (
            <option key={id} value={id} selected={id === draft.targetProviderId}>
              {name}
            </option>
          ))}
        </select>
      </Field>
      <Field name="agent" label="Agent" wrong={wrong("agent")}>
        <select {...controlProps("agent", wrong("agent"))}>
          <option value="">Default ({defaultAgent})</option>
          {agents.map(({ id, objection }) => (
            <option key={id} value={id} selected={id === draft.agent} disabled={objection !== null}>
              {objection === null ? id : `${id} (unavailable)`}
            </option>
          ))}
        </select>
      </Field>
      {missing.length > 0 && (
        <details class="hint">
          <summary>Unavailable: {missing.map(({ id }) => id).join(", ")}</summary>
          <ul>
            {missing.map(({ id, objection }) => (
              <li key={id}>
                <strong>{id}</strong>: {objection}
              </li>
            ))}
          </ul>
        </details>
      )}
      <Field name="model" label="Model" hint={models} wrong={wrong("model")}>
        <input
          {...controlProps("model", wrong("model"))}
          value={draft.model}
          maxLength={200}
          placeholder="provider/model"
        />
      </Field>
      <FurtherAgents rows={draft.also} agents={agents} wrong={wrong("agents")} />
    </fieldset>
  );
}
