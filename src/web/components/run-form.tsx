import type { Prompt } from "../../prompts/schema.ts";
import type { Site } from "../site.ts";
import { controlProps, Field } from "./field.tsx";

/** Submitted values of the form. */
export type RunDraft = {
  args: Record<string, string>;
  urlMap: { from: string; to: string }[];
  runs: string;
  /** Empty: the prompt's. */
  agent: string;
  model: string;
  supersede: boolean;
  /** Idempotency key: a form submitted twice starts one evaluation. */
  key: string;
};

export type RunFormProps = {
  site: Site;
  prompt: Prompt;
  /** IDs of the available agents. */
  agents: string[];
  draft: RunDraft;
  fault: string | null;
  /** Estimated model cost to agree to; null: no paid model. */
  cost: string | null;
};

/** Reads the submitted form. */
export function readRunDraft(form: URLSearchParams): RunDraft {
  const to = form.getAll("urlMap.to");
  return {
    args: Object.fromEntries(
      [...form].flatMap(([name, value]) => (name.startsWith("arg.") ? [[name.slice("arg.".length), value]] : [])),
    ),
    urlMap: form
      .getAll("urlMap.from")
      .map((from, i) => ({ from: from.trim(), to: (to[i] ?? "").trim() }))
      .filter(({ from, to }) => from !== "" || to !== ""),
    runs: (form.get("runs") ?? "").trim(),
    agent: (form.get("agent") ?? "").trim(),
    model: (form.get("model") ?? "").trim(),
    supersede: form.has("supersede"),
    key: form.get("key") ?? "",
  };
}

/** The form that runs the prompt now. */
export function RunForm({ site, prompt, agents, draft, fault, cost }: RunFormProps) {
  if (prompt.status === "archived") return <p class="notice">This prompt is archived. Unarchive it to run it.</p>;
  return (
    <form method="post" action={`${site.base}/prompts/${prompt.id}/run`} class="run-form" id="run-form">
      <input type="hidden" name="key" value={draft.key} />
      <h2>Run now</h2>
      {fault && (
        <p class="notice bad" role="alert">
          {fault}
        </p>
      )}
      {(prompt.templateVars ?? []).map((name) => (
        <Field key={name} name={`arg.${name}`} label={name}>
          <input
            {...controlProps(`arg.${name}`)}
            value={draft.args[name] ?? prompt.templateDefaults?.[name] ?? ""}
            maxLength={2000}
            required
          />
        </Field>
      ))}
      <Field
        name="runs"
        label={prompt.agents ? "Runs with each agent" : "Runs"}
        hint="Use 4 or more to compare evaluations."
      >
        <input
          {...controlProps("runs")}
          type="number"
          min="1"
          max="50"
          value={draft.runs || String(prompt.runsPerEval ?? 1)}
          required
        />
      </Field>
      <details open={draft.agent !== "" || draft.model !== ""}>
        <summary>Use another agent</summary>
        <Field name="agent" label="Agent">
          <select {...controlProps("agent")}>
            <option value="">{prompt.agents ? "All agents of the prompt" : "The prompt’s agent"}</option>
            {agents.map((id) => (
              <option key={id} value={id} selected={id === draft.agent}>
                {id}
              </option>
            ))}
          </select>
        </Field>
        <Field name="model" label="Model">
          <input {...controlProps("model")} value={draft.model} maxLength={200} placeholder="provider/model" />
        </Field>
      </details>
      <details open={draft.urlMap.length > 0 || draft.supersede}>
        <summary>Test a preview deployment</summary>
        <p class="hint">Replace a production host with a preview URL for this run.</p>
        {[...draft.urlMap, { from: "", to: "" }].map(({ from, to }, i) => (
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
        <label class="check">
          <input type="checkbox" name="supersede" checked={draft.supersede} /> Cancel unfinished runs of this preview
        </label>
      </details>
      {cost && (
        <label class="check">
          <input type="checkbox" name="agreed" required /> {cost}
        </label>
      )}
      <button type="submit" class="main">
        Run now
      </button>
    </form>
  );
}
