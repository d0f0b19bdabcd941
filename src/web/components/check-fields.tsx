import { checkMethods } from "../../agents/task.ts";
import { checkKinds, checkOptionColumns, emptyCheckRow, valueTests } from "../check-rows.ts";
import { rowsOf } from "../prompt-form.ts";
import { FieldError, useForm } from "./schema-form.tsx";

type Row = typeof emptyCheckRow;

const kindLabels: Record<(typeof checkKinds)[number], string> = {
  url: "HTTP request",
  command: "Command",
  file: "File",
};

const testLabels: Record<(typeof valueTests)[number], string> = {
  exists: "Must exist",
  equals: "Must equal",
  missing: "Must not exist",
};

/** The success checks of a prompt: the filled rows, and an empty row for another check. */
export const Checks = () => (
  <fieldset id="checks">
    <legend>Success checks</legend>
    <p class="hint">
      Verify the goal after the run: an HTTP request with the expected response, a command in the workspace with the
      expected exit code, or a file that must exist there.
    </p>
    {[...rowsOf(useForm().values, "check"), emptyCheckRow].map((row, i) => (
      <div key={`${i} ${row.target}`}>
        <div class="row five">
          <select name="check.kind" aria-label={`Type of check ${i + 1}`}>
            {checkKinds.map((each) => (
              <option key={each} value={each} selected={each === row.kind}>
                {kindLabels[each]}
              </option>
            ))}
          </select>
          <input
            name="check.target"
            aria-label={`URL, command or file of check ${i + 1}`}
            value={row.target}
            placeholder="https://api.acme.example/v1/rows"
          />
          <input
            name="check.expected"
            aria-label={`Expected status or exit code of check ${i + 1}`}
            value={row.expected}
            placeholder="200"
            inputMode="numeric"
          />
          <input
            name="check.contains"
            aria-label={`Expected text of check ${i + 1}`}
            value={row.contains}
            placeholder="Expected text"
          />
          <select name="check.invariant" aria-label={`Result of check ${i + 1} before the run`}>
            <option value="">Must fail first</option>
            <option value="yes" selected={row.invariant !== ""}>
              May already pass
            </option>
          </select>
        </div>
        <CheckOptions row={row} number={i + 1} />
      </div>
    ))}
    <FieldError name="declaredChecks" />
  </fieldset>
);

/** The inputs that most checks don't need. */
function CheckOptions({ row, number }: { row: Row; number: number }) {
  const toProps = (name: keyof Row, label: string) => ({
    name: `check.${name}`,
    "aria-label": `${label} of check ${number}`,
  });
  const textarea = (name: keyof Row, label: string, placeholder: string) => (
    <label class="field">
      {label}
      <textarea {...toProps(name, label)} rows={2} placeholder={placeholder}>
        {row[name]}
      </textarea>
    </label>
  );
  return (
    <details open={checkOptionColumns.some((name) => row[name] !== "")}>
      <summary>Options of check {number}</summary>
      <p class="hint">
        Method, headers, body and JSON value are for HTTP requests, environment variables for commands.
      </p>
      <label class="field">
        Method
        <select {...toProps("method", "Method")}>
          <option value="">GET</option>
          {checkMethods.slice(1).map((each) => (
            <option key={each} value={each} selected={each === row.method}>
              {each}
            </option>
          ))}
        </select>
      </label>
      {textarea("headers", "Headers, one per line", "Accept: application/json")}
      {textarea("body", "Body", '{"name": "test"}')}
      <div class="field">
        <p class="hint">Value in the JSON response: JSON Pointer, test and value</p>
        <div class="row">
          <input {...toProps("pointer", "JSON Pointer")} value={row.pointer} placeholder="/data/0/id" />
          <select {...toProps("valueTest", "Test of the JSON value")}>
            <option value="">No test</option>
            {valueTests.map((each) => (
              <option key={each} value={each} selected={each === row.valueTest}>
                {testLabels[each]}
              </option>
            ))}
          </select>
          <input {...toProps("value", "Expected JSON value")} value={row.value} placeholder="Value" />
        </div>
      </div>
      {textarea("env", "Environment variables, one per line", "NAME=value")}
    </details>
  );
}
