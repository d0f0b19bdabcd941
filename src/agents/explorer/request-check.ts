import type { Check } from "../agent.ts";
import { valueAt } from "../json-pointer.ts";
import type { DeclaredCheck, JsonExpectation } from "../task.ts";
import { type FetchFailureKind, fetchUrl, type Log } from "./fetching.ts";
import { cut, type ToolSession } from "./session.ts";
import { toSuccessCheck } from "./success-check.ts";

export type RequestCheck = DeclaredCheck & { url: string };

/** Request failures that say nothing about the check. */
const inconclusiveKinds = new Set<FetchFailureKind>(["cut", "aborted", "refused"]);

/** Sends the request of a success check, and compares the response with what the prompt expects. */
export async function testRequest(session: ToolSession, successCheck: RequestCheck, log: Log): Promise<Check> {
  const { url, method = "GET", headers, body, status: expectedStatus = 200, contains, json } = successCheck;
  const fetchResult = await fetchUrl(
    session.fetcher,
    { url, method, headers, body, provenance: "given", foundOn: null, purpose: "check" },
    log,
  );
  const expected = `status ${expectedStatus}${describeText(contains)}${describeJson(json)}`;
  const result = (status: Check["status"], message: string) =>
    toSuccessCheck(successCheck, subjectOf(successCheck), { status, message, expected });
  if (!fetchResult.ok) return result(inconclusiveKinds.has(fetchResult.kind) ? "skip" : "fail", fetchResult.message);
  const request = method === "GET" ? url : `${method} ${url}`;
  const { status } = fetchResult.response;
  if (status !== expectedStatus) return result("fail", `${request} returned status ${status}, not ${expectedStatus}`);
  if (contains !== undefined && !fetchResult.text().includes(contains))
    return result("fail", `${request} returned status ${status}, but not the text "${cut(contains, 100)}"`);
  const problem = json && findJsonProblem(fetchResult.text(), json);
  if (problem) return result("fail", `${request} returned status ${status}, but ${problem}`);
  return result("pass", `${request} returned ${expected}`);
}

/** Identifies the check: it is the same before and after the agent, and differs from those of other checks. */
function subjectOf({ url, method = "GET", headers, body, status = 200, contains, json }: RequestCheck): string {
  const sent = headers || body !== undefined ? ` ${digestOf([headers, body])}` : "";
  return [
    ...(method === "GET" ? [] : [method]),
    `${url} ${status}${sent}`,
    ...(contains === undefined ? [] : [cut(contains, 200)]),
    ...(json ? [describeJson(json)] : []),
  ].join(" ");
}

/** A short digest, to tell checks apart. */
export const digestOf = (value: unknown): string => Bun.hash.xxHash64(JSON.stringify(value)).toString(16);

/** What an expected text adds to the description of a check. */
export const describeText = (contains?: string): string =>
  contains === undefined ? "" : ` and the text "${cut(contains, 100)}"`;

function describeJson(json?: JsonExpectation): string {
  if (!json) return "";
  const { equals, exists = true } = json;
  const name = nameOf(json);
  if (!exists) return ` and no value at ${name}`;
  return equals === undefined ? ` and a value at ${name}` : ` and ${cut(JSON.stringify(equals), 100)} at ${name}`;
}

/** null: the text is JSON with what is expected. */
function findJsonProblem(text: string, json: JsonExpectation): string | null {
  const { pointer, equals, exists = true } = json;
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch {
    return "its body is not JSON";
  }
  const name = nameOf(json);
  const value = valueAt(root, pointer);
  if (value === undefined) return exists ? `there is no value at ${name}` : null;
  if (!exists) return `there is a value at ${name}`;
  if (equals === undefined || value === equals) return null;
  const isPlain = value === null || typeof value !== "object";
  const found = isPlain ? cut(JSON.stringify(value), 100) : Array.isArray(value) ? "an array" : "an object";
  return `the value at ${name} is ${found}, not ${cut(JSON.stringify(equals), 100)}`;
}

/** The empty pointer names the whole document. */
const nameOf = ({ pointer }: JsonExpectation): string => (pointer === "" ? "the root" : cut(pointer, 100));
