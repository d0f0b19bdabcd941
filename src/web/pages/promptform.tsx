import { line } from "../../grading/words.ts";
import type { Provider } from "../../providers/schema.ts";
import { Layout } from "../layout.tsx";
import { type Draft, presets } from "../promptdraft.ts";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { Field, tied } from "./fields.tsx";
import { Checks, LimitFields, type Preview, PreviewPart, Urls } from "./promptparts.tsx";

type Choice = { id: string; hasModel: boolean; objection: string | null };

export type PromptFormProps = {
  site: Site;
  viewer: Viewer;
  /** null: a new prompt. `seen`: how it was when the form was opened. */
  prompt: { id: string; title: string; seen: string } | null;
  /** The id of the prompt to be. */
  id: string;
  draft: Draft;
  preview: Preview;
  providers: Provider[];
  agents: Choice[];
  defaultAgent: string;
  /** Models that can be called, in words. */
  models: string;
  fault: { field: string; message: string } | null;
};

/** A prompt to be written or changed: all in one form, what is wrong beside its field. */
export function PromptFormPage(props: PromptFormProps) {
  const { site, viewer, prompt, id, draft, preview, fault } = props;
  const path = prompt ? `/prompts/${prompt.id}/edit` : "/prompts/new";
  const action = site.base + (prompt ? `/prompts/${prompt.id}/edit` : "/prompts");
  const wrong = (field: string) => (fault?.field === field ? fault.message : undefined);
  const live = {
    "hx-post": `${site.base}/prompts/preview`,
    "hx-trigger": "input changed delay:300ms",
    "hx-target": "#preview",
    "hx-swap": "innerMorph",
    "hx-include": "closest form",
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
      <h1>{prompt ? "Edit the prompt" : "New prompt"}</h1>
      {fault && (
        <p class="notice bad" role="alert">
          {fault.field === "" ? fault.message : "Nothing was saved: one field needs another look. It is marked below."}
        </p>
      )}
      <form method="post" action={action} class="prompt-form">
        <input type="hidden" name="id" value={id} />
        {prompt && <input type="hidden" name="seen" value={prompt.seen} />}
        <div>
          <Field name="title" label="Title" hint="A name for people." wrong={wrong("title")}>
            <input {...tied("title", wrong("title"))} value={draft.title} maxLength={200} placeholder="First query" />
          </Field>
          <Field
            name="text"
            label="Task"
            hint={
              <>
                What the agent is told to do, as a developer would say it. <code>{"{{name}}"}</code> is a variable.
              </>
            }
            wrong={wrong("text")}
          >
            <textarea
              {...tied("text", wrong("text"))}
              rows={8}
              required
              placeholder="Run a query with the {{language}} SDK and print its rows. Docs: https://docs.acme.example/"
              {...live}
            >
              {draft.text}
            </textarea>
          </Field>
          <Field
            name="endGoal"
            label="End goal"
            hint="What must be true at the end. The judge holds the session against it, part by part."
            wrong={wrong("endGoal")}
          >
            <textarea
              {...tied("endGoal", wrong("endGoal"))}
              rows={4}
              placeholder="The SDK was installed. The rows of the query were printed."
              {...live}
            >
              {draft.endGoal}
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
          <LimitFields limits={draft.limits} wrong={wrong("limits")} />
          <label class="check">
            <input type="checkbox" name="reviewBeforePublishing" checked={draft.reviewBeforePublishing} /> Review
            reports before they are published
          </label>
        </div>
        <footer class="toolbar">
          <button type="submit" class="main">
            {prompt ? "Save" : "Create the prompt"}
          </button>
          <button type="submit" name="do" value="look" formNoValidate>
            Look again
          </button>
          <a href={site.base + (prompt ? `/prompts/${prompt.id}` : "/prompts")}>Cancel</a>
          <span class="hint">“Look again” shows variables, times and empty rows without saving.</span>
        </footer>
      </form>
    </Layout>
  );
}

type Wrong = (field: string) => string | undefined;

const Schedule = ({ draft, wrong, live }: { draft: Draft; wrong: Wrong; live: Record<string, string> }) => (
  <fieldset>
    <legend>Schedule</legend>
    <Field name="frequency" label="How often" wrong={draft.frequency === "cron" ? undefined : wrong("frequency")}>
      <select {...tied("frequency", wrong("frequency"))} {...live} hx-trigger="change">
        <option value="">By hand only</option>
        {presets.map((preset) => (
          <option key={preset} value={preset} selected={draft.frequency === preset}>
            {preset.charAt(0).toUpperCase() + preset.slice(1)}
          </option>
        ))}
        <option value="cron" selected={draft.frequency === "cron"}>
          As a cron expression says
        </option>
      </select>
    </Field>
    <div class="cron">
      <Field
        name="cron"
        label="Cron expression"
        hint="Minute, hour, day of the month, month, day of the week; for “as a cron expression says”."
        wrong={draft.frequency === "cron" ? wrong("frequency") : undefined}
      >
        <input
          {...tied("cron", draft.frequency === "cron" ? wrong("frequency") : undefined)}
          value={draft.cron}
          placeholder="0 6 * * 1-5"
          maxLength={200}
          {...live}
        />
      </Field>
    </div>
    <Field
      name="runsPerEval"
      label="Runs of one evaluation"
      hint="Under 4 nothing can be compared: one run cannot tell a change from chance."
      wrong={wrong("runsPerEval")}
    >
      <input
        {...tied("runsPerEval", wrong("runsPerEval"))}
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
  return (
    <fieldset>
      <legend>Who is sent, and where</legend>
      <Field
        name="targetProviderId"
        label="Provider"
        hint="The developer tool under evaluation: a session begins at its docs."
        wrong={wrong("targetProviderId")}
      >
        <select {...tied("targetProviderId", wrong("targetProviderId"))}>
          <option value="">None: the addresses in the task</option>
          {providers.map(({ id, name }) => (
            <option key={id} value={id} selected={id === draft.targetProviderId}>
              {name}
            </option>
          ))}
        </select>
      </Field>
      <Field name="agent" label="Agent" wrong={wrong("agent")}>
        <select {...tied("agent", wrong("agent"))}>
          <option value="">The default ({defaultAgent} now)</option>
          {agents.map(({ id, objection }) => (
            <option key={id} value={id} selected={id === draft.agent} disabled={objection !== null}>
              {objection === null ? id : `${id} (cannot be sent from here)`}
            </option>
          ))}
        </select>
      </Field>
      {agents
        .filter(({ objection }) => objection !== null)
        .map(({ id, objection }) => (
          <p key={id} class="hint">
            <strong>{id}</strong> cannot be sent from here: {objection}
          </p>
        ))}
      <Field name="model" label="Model" hint={models} wrong={wrong("model")}>
        <input {...tied("model", wrong("model"))} value={draft.model} maxLength={200} placeholder="provider/model" />
      </Field>
    </fieldset>
  );
}
