import type { DeclaredCheck } from "../prompts/check-schema.ts";
import { assignments } from "./form-values.ts";

/** The optional inputs of a success check. `value`: JSON, or text without quotes. */
export const checkOptionColumns = ["method", "headers", "body", "pointer", "valueTest", "value", "env"] as const;

/**
 * The inputs of a success check in the form of a prompt. `expected`: the status of a response, or the exit code of a command. `invariant`: `yes` or
 * empty.
 */
export const checkColumns = [
  ...(["target", "kind", "expected", "contains", "invariant"] as const),
  ...checkOptionColumns,
];

type CheckRow = Record<(typeof checkColumns)[number], string>;

export const checkKinds = ["url", "command", "file"] as const;
export const valueTests = ["exists", "equals", "missing"] as const;

/** A row without a check. */
export const emptyCheckRow: CheckRow = toCheckRow({});

/** A success check as a row of the form. */
export function toCheckRow(check: DeclaredCheck): CheckRow {
  const { url, command, file, method, headers = {}, body, status, json, env = {}, exitCode, contains } = check;
  return {
    target: url ?? command ?? file ?? "",
    kind: checkKinds.find((kind) => check[kind] !== undefined) ?? "url",
    expected: String(status ?? exitCode ?? ""),
    contains: contains ?? "",
    invariant: check.invariant ? "yes" : "",
    method: method === "GET" ? "" : (method ?? ""),
    headers: Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}`)
      .join("\n"),
    body: body ?? "",
    pointer: json?.pointer ?? "",
    valueTest: valueTestOf(json),
    value: json?.equals === undefined ? "" : toValueText(json.equals),
    env: assignments.write(env as never),
  };
}

function valueTestOf(json: DeclaredCheck["json"]): CheckRow["valueTest"] {
  if (json === undefined) return "";
  if (json.exists === false) return "missing";
  return json.equals === undefined ? "exists" : "equals";
}

/** The success check in a row. It is not validated yet. */
export function toCheck(row: CheckRow): object {
  const { kind, target, expected, contains, invariant, method, headers, body, env } = row;
  const json = toJsonExpectation(row);
  return {
    [checkKinds.find((each) => each === kind) ?? "url"]: target,
    ...(method && { method }),
    ...(headers && { headers: toHeaders(headers) }),
    ...(body && { body: body.replaceAll("\r\n", "\n") }),
    ...(expected && {
      [kind === "command" ? "exitCode" : "status"]: /^\d{1,9}$/.test(expected) ? Number(expected) : expected,
    }),
    ...(json && { json }),
    ...(env && { env: assignments.read(env.replaceAll("\r\n", "\n")) }),
    ...(contains && { contains }),
    ...(invariant && { invariant: true }),
  };
}

/** What a JSON response must contain; undefined: the response isn't tested. An empty pointer means the whole response. */
function toJsonExpectation({ pointer, valueTest, value }: CheckRow): object | undefined {
  if (pointer === "" && valueTest === "" && value === "") return undefined;
  return {
    pointer,
    ...(valueTest === "missing" && { exists: false }),
    // A value is never dropped. Without a test, it means `equals`. With another test, validation may reject it.
    ...((valueTest === "equals" || value) && { equals: toValue(value) }),
  };
}

/** Parses lines such as `Name: value`. A line without a colon has no value, and validation rejects it. */
const toHeaders = (text: string) =>
  Object.fromEntries(
    text
      .split("\n")
      .filter((line) => line.trim() !== "")
      .map((line) => {
        const [, name = line.trim(), value = null] = /^([^:]*):(.*)$/.exec(line.trim()) ?? [];
        return [name.trim(), value === null ? null : value.trim()];
      }),
  );

/** Parses JSON. Text that isn't JSON is the value itself. */
function toValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Writes text without quotes, unless it would then be read as something else. */
function toValueText(value: string | number | boolean | null): string {
  // Rows are trimmed, and an empty value means no value.
  const isKeptByRows = typeof value === "string" && value !== "" && value === value.trim();
  return isKeptByRows && toValue(value) === value ? value : JSON.stringify(value);
}
