import { type Limits, limitNames } from "../../config/limits.ts";
import { checkKinds, type Draft, emptyAgent, emptyCheck, emptyUrl } from "../prompt-draft.ts";
import { controlProps, Field } from "./field.tsx";

/** Preview of a draft: its variables and next runs. */
export type Preview = {
  variables: string[];
  /** Next runs in the time zone of the organization. */
  times: string[];
  problem: string | null;
  timeZone: string;
};

type LabelProps = { draft: Draft; hasWorkers: boolean; wrong: (field: string) => string | undefined };

/** Tags, and the labels that workers must have. */
export const LabelFields = ({ draft, hasWorkers, wrong }: LabelProps) => (
  <>
    <Field
      name="tags"
      label="Tags"
      hint="Separated by commas. Use them to filter prompts and to gate several at once."
      wrong={wrong("tags")}
    >
      <input {...controlProps("tags", wrong("tags"))} value={draft.tags} placeholder="quickstart, sdk" />
    </Field>
    {(hasWorkers || draft.workerLabels !== "") && (
      <Field
        name="workerLabels"
        label="Worker labels"
        hint="Separated by commas. Only workers with all of them run this prompt."
        wrong={wrong("workerLabels")}
      >
        <input
          {...controlProps("workerLabels", wrong("workerLabels"))}
          value={draft.workerLabels}
          placeholder="gpu, eu"
        />
      </Field>
    )}
  </>
);

/** Variables with their default values, and the next scheduled runs. */
export const PreviewPart = ({ draft, preview, wrong }: { draft: Draft; preview: Preview; wrong?: string }) => (
  <>
    {preview.problem && <p class="wrong">{preview.problem}</p>}
    {preview.times.length > 0 && (
      <div class="times">
        <p class="hint">Next runs ({preview.timeZone})</p>
        <ol>
          {preview.times.map((time) => (
            <li key={time}>{time}</li>
          ))}
        </ol>
      </div>
    )}
    <fieldset>
      <legend>
        Variables <small>{preview.variables.length}</small>
      </legend>
      {preview.variables.length === 0 && (
        <p class="hint">
          No variables. Add one by typing <code>{"{{language}}"}</code> in the task.
        </p>
      )}
      {preview.variables.map((name) => (
        <Field key={name} name={`default.${name}`} label={name} hint="Default value (required for scheduled runs)">
          <input {...controlProps(`default.${name}`)} value={draft.defaults[name] ?? ""} maxLength={2000} />
        </Field>
      ))}
      {Object.entries(draft.defaults)
        .filter(([name]) => !preview.variables.includes(name))
        .map(([name, value]) => (
          // Kept in case its variable is typed again.
          <input key={name} type="hidden" name={`default.${name}`} value={value} />
        ))}
      {wrong && <p class="wrong">{wrong}</p>}
    </fieldset>
  </>
);

const kinds = ["docs", "openapi", "competitor", "mcp"];

/** The rows plus one empty row to add another. */
export const Urls = ({ rows, wrong }: { rows: Draft["urls"]; wrong?: string }) => (
  <fieldset>
    <legend>More start URLs</legend>
    <p class="hint">Other pages the agent may start from.</p>
    {[...rows, emptyUrl].map(({ url, name, kind, more }, i) => (
      <div class="row" key={`${i} ${url}`}>
        <input
          name="url.url"
          aria-label={`URL ${i + 1}`}
          value={url}
          placeholder="https://docs.acme.example/llms.txt"
        />
        <select name="url.kind" aria-label={`Type of URL ${i + 1}`}>
          {[...new Set(["", ...kinds, kind])].map((each) => (
            <option key={each} value={each} selected={each === kind}>
              {each || "Type"}
            </option>
          ))}
        </select>
        <input name="url.name" aria-label={`Name of URL ${i + 1}`} value={name} placeholder="Name" />
        <input type="hidden" name="url.more" value={more} />
      </div>
    ))}
    {wrong && <p class="wrong">{wrong}</p>}
  </fieldset>
);

type AgentOption = { id: string; objection: string | null };

/** Further agents of the prompt: the rows plus one empty row to add another. */
export const FurtherAgents = ({
  rows,
  agents,
  wrong,
}: {
  rows: Draft["also"];
  agents: AgentOption[];
  wrong?: string;
}) => (
  <details open={rows.length > 0 || wrong !== undefined}>
    <summary>Evaluate more agents</summary>
    <p class="hint">Each evaluation runs the prompt with every agent. Each agent has its own results.</p>
    {[...rows, emptyAgent].map(({ agent, model }, i) => (
      <div class="row two" key={`${i} ${agent}`}>
        <select name="also.agent" aria-label={`Agent ${i + 2}`}>
          <option value="">None</option>
          {agents.map(({ id, objection }) => (
            <option key={id} value={id} selected={id === agent} disabled={objection !== null && id !== agent}>
              {objection === null ? id : `${id} (unavailable)`}
            </option>
          ))}
        </select>
        <input
          name="also.model"
          aria-label={`Model of agent ${i + 2}`}
          value={model}
          maxLength={200}
          placeholder="provider/model"
        />
      </div>
    ))}
    {wrong && <p class="wrong">{wrong}</p>}
  </details>
);

const checkLabels: Record<(typeof checkKinds)[number], string> = {
  url: "HTTP request",
  command: "Command",
  file: "File",
};

export const Checks = ({ rows, wrong }: { rows: Draft["checks"]; wrong?: string }) => (
  <fieldset>
    <legend>Success checks</legend>
    <p class="hint">
      Verify the goal after the run: an HTTP request with the expected status and text, a command in the workspace with
      the expected exit code, or a file that must exist there.
    </p>
    {[...rows, emptyCheck].map(({ kind, target, expected, contains, invariant }, i) => (
      <div class="row five" key={`${i} ${target}`}>
        <select name="check.kind" aria-label={`Type of check ${i + 1}`}>
          {checkKinds.map((each) => (
            <option key={each} value={each} selected={each === kind}>
              {checkLabels[each]}
            </option>
          ))}
        </select>
        <input
          name="check.target"
          aria-label={`URL, command or file of check ${i + 1}`}
          value={target}
          placeholder="https://api.acme.example/v1/rows"
        />
        <input
          name="check.expected"
          aria-label={`Expected status or exit code of check ${i + 1}`}
          value={expected}
          placeholder="200"
          inputMode="numeric"
        />
        <input
          name="check.contains"
          aria-label={`Expected text of check ${i + 1}`}
          value={contains}
          placeholder="Expected text"
        />
        <select name="check.invariant" aria-label={`Result of check ${i + 1} before the run`}>
          <option value="">Must fail before</option>
          <option value="yes" selected={invariant !== ""}>
            May pass before
          </option>
        </select>
      </div>
    ))}
    {wrong && <p class="wrong">{wrong}</p>}
  </fieldset>
);

/** Labels of the run limits. */
export const limitLabels: Record<keyof Limits, string> = {
  wallClockSeconds: "Time (seconds)",
  idleSeconds: "Idle time (seconds)",
  modelCalls: "Model calls",
  tokens: "Tokens",
  costUsd: "Cost (USD)",
  toolCalls: "Tool calls",
  requests: "HTTP requests",
  bytesOut: "Data sent (bytes)",
  workspaceBytes: "Workspace size (bytes)",
  memoryBytes: "Memory (bytes)",
};

/** Inputs for the limits of one run. */
export const LimitFields = ({ limits, wrong }: { limits: Draft["limits"]; wrong?: string }) => (
  <details class="more" open={Object.keys(limits).length > 0 || wrong !== undefined}>
    <summary>Run limits</summary>
    <p class="hint">Leave blank to use the server default, which is also the maximum.</p>
    <div class="pairs">
      {limitNames.map((name) => (
        <Field key={name} name={`limit.${name}`} label={limitLabels[name]}>
          <input {...controlProps(`limit.${name}`)} inputMode="decimal" value={limits[name] ?? ""} />
        </Field>
      ))}
    </div>
    {wrong && <p class="wrong">{wrong}</p>}
  </details>
);
