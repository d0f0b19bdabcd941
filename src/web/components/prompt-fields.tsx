import { type Limits, limitNames } from "../../config/limits.ts";
import { checkKinds, type Draft, emptyCheck, emptyUrl, type workspaceFields } from "../prompt-draft.ts";
import { controlProps, Field } from "./field.tsx";

/** Preview of a draft: its variables and next runs. */
export type Preview = {
  variables: string[];
  /** Next runs in the time zone of the organization. */
  times: string[];
  problem: string | null;
  timeZone: string;
};

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
    <legend>Start URLs</legend>
    <p class="hint">Other pages the agent may start from.</p>
    {[...rows.filter(({ url }) => url), emptyUrl].map(({ url, name, kind, more }, i) => (
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
    {[...rows.filter(({ target }) => target), emptyCheck].map(({ kind, target, expected, contains, invariant }, i) => (
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

type Archives = { id: string; files: number; createdAt: string }[];

/** Inputs for what the workspace holds when the agent starts. */
export const WorkspaceFields = ({
  workspace,
  archives,
  wrong,
}: {
  workspace: Draft["workspace"];
  archives: Archives;
  wrong?: string;
}) => {
  const value = (name: (typeof workspaceFields)[number]) => workspace[name] ?? "";
  const input = (name: (typeof workspaceFields)[number]) => controlProps(`workspace.${name}`);
  return (
    <details class="more" open={Object.values(workspace).some((each) => each !== "") || wrong !== undefined}>
      <summary>Workspace</summary>
      <p class="hint">What the agent finds in its directory. Leave blank to start with an empty one.</p>
      <Field name="workspace.repositoryUrl" label="Git repository">
        <input
          {...input("repositoryUrl")}
          value={value("repositoryUrl")}
          placeholder="https://git.acme.example/starter.git"
        />
      </Field>
      <Field name="workspace.repositoryRef" label="Branch, tag or commit">
        <input {...input("repositoryRef")} value={value("repositoryRef")} placeholder="main" />
      </Field>
      <Field
        name="workspace.archive"
        label="Archive"
        hint={
          <>
            In place of a repository. Upload a directory with <code>evald archive upload</code>.
          </>
        }
      >
        <select {...input("archive")}>
          <option value="">None</option>
          {value("archive") !== "" && !archives.some(({ id }) => id === value("archive")) && (
            <option value={value("archive")} selected>
              {value("archive")}
            </option>
          )}
          {archives.map(({ id, files, createdAt }) => (
            <option key={id} value={id} selected={id === value("archive")}>
              {`${files} files, ${createdAt.slice(0, 10)} (${id.slice(-6)})`}
            </option>
          ))}
        </select>
      </Field>
      <Field name="workspace.setup" label="Set-up command" hint="Runs in the sandbox before the agent.">
        <textarea {...input("setup")} rows={2} placeholder="npm ci">
          {value("setup")}
        </textarea>
      </Field>
      <Field name="workspace.env" label="Environment variables" hint="One NAME=value per line. Don’t put secrets here.">
        <textarea {...input("env")} rows={2} placeholder="ACME_REGION=eu-1">
          {value("env")}
        </textarea>
      </Field>
      <Field name="workspace.instructions" label="AGENTS.md" hint="Instructions that agents read when they start.">
        <textarea {...input("instructions")} rows={4}>
          {value("instructions")}
        </textarea>
      </Field>
      {wrong && <p class="wrong">{wrong}</p>}
    </details>
  );
};

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
