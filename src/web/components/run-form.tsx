import { Type } from "@sinclair/typebox";
import type { Prompt } from "../../prompts/schema.ts";
import { ownMember } from "../../schema.ts";
import type { Site } from "../site.ts";
import { Field } from "./field.tsx";
import { Notices, Submit } from "./form-parts.tsx";
import { CheckField, SchemaField, SchemaForm } from "./schema-form.tsx";

/** Maximum number of runs that the form starts with each agent. */
export const maxRuns = 50;

/**
 * The fields of the form, besides variables (`arg.NAME`), mapped hosts and consent. `key`: makes sure that a form that is submitted twice starts only
 * one evaluation.
 */
const RunFields = Type.Object({
  runs: Type.Integer({ minimum: 1, maximum: maxRuns }),
  agent: Type.Optional(Type.String()),
  model: Type.Optional(Type.String({ maxLength: 200 })),
  supersede: Type.Boolean(),
  key: Type.String(),
});

export type RunFormProps = {
  site: Site;
  prompt: Prompt;
  /** IDs of the available agents. */
  agents: string[];
  /** The submitted values, if the form was rejected. */
  values: URLSearchParams;
  errorMessage?: string;
  /** Estimated model cost that the user must agree to; null: no paid model is used. */
  costConsent: string | null;
};

/** The hosts to replace in a run. */
export function mappedHostsIn(form: URLSearchParams): { from: string; to: string }[] {
  const to = form.getAll("urlMap.to");
  return form
    .getAll("urlMap.from")
    .map((from, i) => ({ from: from.trim(), to: (to[i] ?? "").trim() }))
    .filter(({ from, to }) => from !== "" || to !== "");
}

/** The form that starts runs of the prompt. */
export function RunForm({ site, prompt, agents, values, errorMessage, costConsent }: RunFormProps) {
  if (prompt.status === "archived") return <p class="notice">This prompt is archived. Unarchive it to run it.</p>;
  const shownValues = new URLSearchParams(values);
  if (!values.get("runs")) shownValues.set("runs", String(prompt.runsPerEval ?? 1));
  const hosts = mappedHostsIn(values);
  return (
    <SchemaForm
      {...{ schema: RunFields, values: shownValues }}
      action={`${site.base}/prompts/${prompt.id}/run`}
      class="run-form"
      id="run-form"
    >
      <input type="hidden" name="key" value={values.get("key") ?? ""} />
      <h2>Run now</h2>
      <Notices errorMessage={errorMessage} />
      {(prompt.templateVars ?? [])
        .map((variable) => [variable, `arg.${variable}`] as const)
        .map(([variable, name]) => (
          <Field key={name} name={name} label={variable}>
            <input
              id={name}
              name={name}
              value={values.get(name) ?? ownMember(prompt.templateDefaults ?? {}, variable) ?? ""}
              maxLength={2000}
              required
            />
          </Field>
        ))}
      <SchemaField
        name="runs"
        label={prompt.agents ? "Runs with each agent" : "Runs"}
        hint="Use 4 or more to compare evaluations."
        required
      />
      <details open={Boolean(values.get("agent") || values.get("model"))}>
        <summary>Use another agent</summary>
        <SchemaField
          name="agent"
          label="Agent"
          options={[
            ["", prompt.agents ? "All agents of the prompt" : "The prompt’s agent"],
            ...agents.map((id) => [id, id] as const),
          ]}
        />
        <SchemaField name="model" label="Model" placeholder="provider/model" />
      </details>
      <details open={hosts.length > 0 || values.has("supersede")}>
        <summary>Test a preview deployment</summary>
        <p class="hint">Replace a production host with a preview URL for this run.</p>
        {[...hosts, { from: "", to: "" }].map(({ from, to }, i) => (
          <div class="row two" key={`${i} ${from}`}>
            <input name="urlMap.from" aria-label={`Host ${i + 1}`} value={from} placeholder="docs.acme.example" />
            <input
              name="urlMap.to"
              aria-label={`Preview URL for host ${i + 1}`}
              value={to}
              placeholder="https://preview-42.acme.example"
            />
          </div>
        ))}
        <CheckField name="supersede">Cancel unfinished runs of this preview</CheckField>
      </details>
      {costConsent && (
        <label class="check">
          <input type="checkbox" name="agreed" required /> {costConsent}
        </label>
      )}
      <Submit>Run now</Submit>
    </SchemaForm>
  );
}
