import { type Limits, limitNames } from "../../prompts/limits.ts";
import { type Draft, emptyCheck, emptyUrl } from "../promptdraft.ts";
import { Field, tied } from "./fields.tsx";

/** Made of the draft, for people who look at it while they write. */
export type Preview = {
  variables: string[];
  /** In the time zone of the organisation, or why there are none. */
  times: string[];
  trouble: string | null;
  timeZone: string;
};

/** The variables with their defaults, and when the schedule comes next. */
export const PreviewPart = ({ draft, preview, wrong }: { draft: Draft; preview: Preview; wrong?: string }) => (
  <>
    {preview.trouble && <p class="wrong">{preview.trouble}</p>}
    {preview.times.length > 0 && (
      <div class="times">
        <p class="hint">Next times, {preview.timeZone}</p>
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
          None. Write <code>{"{{language}}"}</code> in the task to have one: each run gives it a value.
        </p>
      )}
      {preview.variables.map((name) => (
        <Field key={name} name={`default.${name}`} label={name} hint="Default, which scheduled runs need">
          <input {...tied(`default.${name}`)} value={draft.defaults[name] ?? ""} maxLength={2000} />
        </Field>
      ))}
      {Object.entries(draft.defaults)
        .filter(([name]) => !preview.variables.includes(name))
        .map(([name, value]) => (
          // Its variable may come back.
          <input key={name} type="hidden" name={`default.${name}`} value={value} />
        ))}
      {wrong && <p class="wrong">{wrong}</p>}
    </fieldset>
  </>
);

const kinds = ["docs", "openapi", "competitor", "mcp"];

/** One empty row more than there are, so that none has to be asked for. */
export const Urls = ({ rows, wrong }: { rows: Draft["urls"]; wrong?: string }) => (
  <fieldset>
    <legend>Additional addresses</legend>
    <p class="hint">Where a session may start beside the provider’s docs.</p>
    {[...rows.filter(({ url }) => url), emptyUrl].map(({ url, name, kind, more }, i) => (
      <div class="row" key={`${i} ${url}`}>
        <input
          name="url.url"
          aria-label={`Address ${i + 1}`}
          value={url}
          placeholder="https://docs.acme.example/llms.txt"
        />
        <select name="url.kind" aria-label={`Kind of address ${i + 1}`}>
          {[...new Set(["", ...kinds, kind])].map((each) => (
            <option key={each} value={each} selected={each === kind}>
              {each || "no kind"}
            </option>
          ))}
        </select>
        <input name="url.name" aria-label={`Name of address ${i + 1}`} value={name} placeholder="Name" />
        <input type="hidden" name="url.more" value={more} />
      </div>
    ))}
    {wrong && <p class="wrong">{wrong}</p>}
  </fieldset>
);

export const Checks = ({ rows, wrong }: { rows: Draft["checks"]; wrong?: string }) => (
  <fieldset>
    <legend>Declared checks</legend>
    <p class="hint">Parts of the end goal that a machine can test: asked by GET when the agent is done.</p>
    {[...rows.filter(({ url }) => url), emptyCheck].map(({ url, status, contains }, i) => (
      <div class="row" key={`${i} ${url}`}>
        <input
          name="check.url"
          aria-label={`Address of check ${i + 1}`}
          value={url}
          placeholder="https://api.acme.example/v1/rows"
        />
        <input
          name="check.status"
          aria-label={`Status of check ${i + 1}`}
          value={status}
          placeholder="200"
          inputMode="numeric"
        />
        <input
          name="check.contains"
          aria-label={`Text that check ${i + 1} must find`}
          value={contains}
          placeholder="Text in the body"
        />
      </div>
    ))}
    {wrong && <p class="wrong">{wrong}</p>}
  </fieldset>
);

const limitLabels: Record<keyof Limits, string> = {
  wallClockSeconds: "Time, seconds",
  idleSeconds: "Idle time, seconds",
  modelCalls: "Model calls",
  tokens: "Tokens",
  costUsd: "Cost, USD",
  toolCalls: "Tool calls",
  requests: "Requests",
  bytesOut: "Sent out, bytes",
  workspaceBytes: "Workspace, bytes",
  memoryBytes: "Memory, bytes",
};

/** What one run may use. */
export const LimitFields = ({ limits, wrong }: { limits: Draft["limits"]; wrong?: string }) => (
  <details class="more" open={Object.keys(limits).length > 0 || wrong !== undefined}>
    <summary>Limits of one run</summary>
    <p class="hint">Each at most what the operator allows, which an empty field means.</p>
    <div class="pairs">
      {limitNames.map((name) => (
        <Field key={name} name={`limit.${name}`} label={limitLabels[name]}>
          <input {...tied(`limit.${name}`)} inputMode="decimal" value={limits[name] ?? ""} />
        </Field>
      ))}
    </div>
    {wrong && <p class="wrong">{wrong}</p>}
  </details>
);
