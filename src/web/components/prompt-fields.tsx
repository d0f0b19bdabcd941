import { maxArchiveBytes } from "../../archives/archive-check.ts";
import type { Archive } from "../../archives/schema.ts";
import { effortLevels } from "../../config/agent-entry.ts";
import { type Limits, limitNames } from "../../config/limits.ts";
import { capitalize } from "../../grading/text.ts";
import type { AgentInfo } from "../../prompts/agent-schema.ts";
import { type OptionTexts, optionTextsOf, rowsOf } from "../prompt-form.ts";
import { Field } from "./field.tsx";
import { errorMessageAt, FieldError, SchemaField, useForm } from "./schema-form.tsx";
import { useTime } from "./when.tsx";

/** The prefix of a variable's name, in the field for its default value. */
const defaultsPrefix = "templateDefaults.";

/** Values that are derived from the fields of a prompt's form: the variables in its texts, and the next runs of its schedule. */
export type DerivedValues = {
  variables: string[];
  /** The next runs, in the time zone of the organization. */
  times: string[];
  problem: string | null;
  timeZone: string;
};

type DerivedFieldsProps = { values: URLSearchParams; derived: DerivedValues; errorMessage?: string };

/** The part of the form that changes while the user fills it in: the variables with their default values, and the next scheduled runs. */
export const DerivedFields = ({
  values,
  derived: { variables, times, problem, timeZone },
  errorMessage,
}: DerivedFieldsProps) => (
  <>
    {problem && <p class="wrong">{problem}</p>}
    {times.length > 0 && (
      <div class="times">
        <p class="hint">Next runs ({timeZone})</p>
        <ol>
          {times.map((time) => (
            <li key={time}>{time}</li>
          ))}
        </ol>
      </div>
    )}
    <fieldset>
      <legend>
        Variables <small>{variables.length}</small>
      </legend>
      {variables.length === 0 && (
        <p class="hint">
          No variables. Add one by typing <code>{"{{language}}"}</code> in the task.
        </p>
      )}
      {variables.map((variable) => {
        const name = defaultsPrefix + variable;
        return (
          <Field key={name} name={name} label={variable} hint="Default value (required for scheduled runs)">
            <input id={name} name={name} value={values.get(name) ?? ""} maxLength={2000} />
          </Field>
        );
      })}
      {[...values]
        .filter(([name]) => name.startsWith(defaultsPrefix) && !variables.includes(name.slice(defaultsPrefix.length)))
        .map(([name, value]) => (
          // Kept in case the variable is typed again.
          <input key={name} type="hidden" name={name} value={value} />
        ))}
      {errorMessage && <p class="wrong">{errorMessage}</p>}
    </fieldset>
  </>
);

const urlKinds = ["docs", "openapi", "competitor", "mcp"];

/** The filled rows, and an empty row for another URL. */
export const Urls = () => (
  <fieldset>
    <legend>More start URLs</legend>
    <p class="hint">Other pages the agent may start from.</p>
    {[...rowsOf(useForm().values, "url"), { url: "", name: "", kind: "docs", more: "" }].map(
      ({ url, name, kind, more }, i) => (
        <div class="row" key={`${i} ${url}`}>
          <input
            name="url.url"
            aria-label={`URL ${i + 1}`}
            value={url}
            placeholder="https://docs.acme.example/llms.txt"
          />
          <select name="url.kind" aria-label={`Type of URL ${i + 1}`}>
            {[...new Set(["", ...urlKinds, kind])].map((each) => (
              <option key={each} value={each} selected={each === kind}>
                {each || "Type"}
              </option>
            ))}
          </select>
          <input name="url.name" aria-label={`Name of URL ${i + 1}`} value={name} placeholder="Name" />
          {/* Properties of the URL that have no input, as JSON. */}
          <input type="hidden" name="url.more" value={more} />
        </div>
      ),
    )}
    <FieldError name="additionalUrls" />
  </fieldset>
);

type AgentOptionsProps = {
  /** The prefix of the names of the inputs. */
  prefix: "options" | "furtherAgent";
  /** The name of the agent, to tell the inputs of several agents apart. */
  agentName: string;
  texts: OptionTexts;
};

/** Settings of a coding agent. All are optional. The prompt is rejected if its agent doesn't support a setting. */
function AgentOptionFields({ prefix, agentName, texts }: AgentOptionsProps) {
  const toProps = (name: keyof OptionTexts, label: string) => ({
    name: `${prefix}.${name}`,
    "aria-label": `${label} of ${agentName}`,
  });
  const select = (name: keyof OptionTexts, label: string, options: [string, string][]) => (
    <label class="field">
      {label}
      <select {...toProps(name, label)}>
        {[["", "Default"], ...options].map(([value, text]) => (
          <option key={value} value={value} selected={value === texts[name]}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
  const textarea = (name: keyof OptionTexts, label: string, placeholder: string) => (
    <label class="field">
      {label}
      <textarea {...toProps(name, label)} rows={2} placeholder={placeholder}>
        {texts[name]}
      </textarea>
    </label>
  );
  return (
    <details open={Object.values(texts).some((text) => text !== "")}>
      <summary>Options of {agentName}</summary>
      <p class="hint">For coding agents. Not every agent has every option.</p>
      {select(
        "effort",
        "Effort",
        effortLevels.map((level) => [level, capitalize(level)]),
      )}
      {select("permissions", "Permissions", [
        ["allow", "Everything is allowed"],
        ["ask", "It asks first (counts as interruptions)"],
      ])}
      {select("webSearch", "Web search", [["on", "On"]])}
      {select("login", "Credentials", [["on", "Login of the organization"]])}
      {textarea("systemPrompt", "Further instructions", "Prefer the Python SDK.")}
      {textarea("args", "Further arguments, one per line", "--verbose")}
      {textarea("env", "Environment variables, not secret", "NAME=value")}
    </details>
  );
}

/** Additional agents of the prompt as rows of the form: the filled rows, and an empty row for another agent. */
export function FurtherAgents({ agents }: { agents: AgentInfo[] }) {
  const form = useForm();
  const rows = rowsOf(form.values, "furtherAgent");
  const emptyRow = { agent: "", model: "", ...optionTextsOf(new URLSearchParams()) };
  return (
    <>
      <AgentOptionFields prefix="options" agentName="the agent" texts={optionTextsOf(form.values)} />
      <details open={rows.length > 0 || errorMessageAt(form, "agents") !== undefined}>
        <summary>Evaluate more agents</summary>
        <p class="hint">Each evaluation runs the prompt with every agent. Each agent has its own results.</p>
        {[...rows, emptyRow].map(({ agent, model, ...texts }, i) => (
          <div key={`${i} ${agent}`}>
            <div class="row two">
              <select name="furtherAgent.agent" aria-label={`Agent ${i + 2}`}>
                <option value="">None</option>
                {agents.map(({ id, objection }) => (
                  <option key={id} value={id} selected={id === agent} disabled={objection !== null && id !== agent}>
                    {objection === null ? id : `${id} (unavailable)`}
                  </option>
                ))}
              </select>
              <input
                name="furtherAgent.model"
                aria-label={`Model of agent ${i + 2}`}
                value={model}
                maxLength={200}
                placeholder="provider/model"
              />
            </div>
            <AgentOptionFields prefix="furtherAgent" agentName={`agent ${i + 2}`} texts={texts} />
          </div>
        ))}
        <FieldError name="agents" />
      </details>
    </>
  );
}

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

/** Whether a group of fields has values or an error. If so, it must be visible. */
function useIsOpen(group: string): boolean {
  const form = useForm();
  const isFilled = [...form.values].some(([name, value]) => name.startsWith(`${group}.`) && value !== "");
  return isFilled || errorMessageAt(form, group) !== undefined;
}

/** The limits of one run. */
export const LimitFields = () => (
  <details class="more" id="limits" open={useIsOpen("limits")}>
    <summary>Run limits</summary>
    <p class="hint">Leave blank to use the server default, which is also the maximum.</p>
    <div class="pairs">
      {limitNames.map((name) => (
        <SchemaField key={name} name={`limits.${name}`} label={limitLabels[name]} type="text" inputMode="decimal" />
      ))}
    </div>
    <FieldError name="limits" />
  </details>
);

/** What the workspace contains when the agent starts. */
export const WorkspaceFields = ({ archives }: { archives: Archive[] }) => (
  <details class="more" id="workspace" open={useIsOpen("workspace")}>
    <summary>Workspace</summary>
    <p class="hint">Files and settings for the agent. Leave blank to start in an empty directory.</p>
    <SchemaField
      name="workspace.repository.url"
      label="Git repository"
      type="text"
      placeholder="https://git.acme.example/starter.git"
    />
    <SchemaField name="workspace.repository.ref" label="Branch, tag or commit" placeholder="main" />
    <ArchiveFields name="archive" label="Archive" hint="Used instead of a repository." archives={archives} />
    <SchemaField
      name="workspace.setup"
      label="Setup command"
      hint="Runs in the sandbox before the agent."
      rows={2}
      placeholder="npm ci"
    />
    <SchemaField
      name="workspace.env"
      label="Environment variables"
      hint="One NAME=value per line. Don’t put secrets here."
      rows={2}
      placeholder="ACME_REGION=eu-1"
    />
    <SchemaField
      name="workspace.instructions"
      label="AGENTS.md"
      hint="Instructions that agents read when they start."
      rows={4}
    />
    <SchemaField
      name="workspace.skills.folder"
      label="Skills"
      hint="Workspace folder that contains a SKILL.md, or subfolders that each contain one."
      placeholder="skills"
    />
    <ArchiveFields name="skills.archive" label="Skills archive" hint="Used instead of a folder." archives={archives} />
    <SchemaField
      name="workspace.mcpServers"
      label="MCP servers"
      hint="JSON object with a server per name: a url, or a command with args and env. Don’t put secrets here."
      rows={3}
      placeholder='{"acme": {"url": "https://mcp.acme.example/mcp"}}'
    />
    <FieldError name="workspace" />
  </details>
);

const maxMib = maxArchiveBytes / 1024 ** 2;

type ArchiveProps = { name: string; label: string; hint: string; archives: Archive[] };

/** Selects an uploaded archive, or uploads a new one. */
function ArchiveFields({ name, label, hint, archives }: ArchiveProps) {
  const toTime = useTime();
  const value = useForm().values.get(`workspace.${name}`) ?? "";
  const archiveChoices = archives.map(
    ({ id, files, createdAt }) => [id, `${files} files, ${toTime(createdAt)} (${id.slice(-6)})`] as const,
  );
  const missingChoice = value === "" || archives.some(({ id }) => id === value) ? [] : [[value, value] as const];
  const upload = `upload.${name}`;
  return (
    <>
      <SchemaField
        name={`workspace.${name}`}
        label={label}
        hint={hint}
        options={[["", "None"], ...missingChoice, ...archiveChoices]}
      />
      <Field
        name={upload}
        label={`Upload ${label === "Archive" ? "an archive" : "a skills archive"}`}
        hint={`A .tar.gz file of at most ${maxMib} MiB. Replaces the archive selected above.`}
      >
        <input id={upload} name={upload} type="file" accept=".gz,.tgz,application/gzip" data-max-mib={maxMib} />
      </Field>
    </>
  );
}
