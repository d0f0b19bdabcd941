import type { Check } from "../agent.ts";
import { fillSecrets, type SecretProblem, secretNamesOf, withoutCheckSecrets } from "../check-secrets.ts";
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
  const { url, method = "GET", status: expectedStatus = 200, contains, json } = successCheck;
  const expected = `status ${expectedStatus}${describeText(contains)}${describeJson(json)}`;
  const result = (status: Check["status"], message: string) =>
    toSuccessCheck(successCheck, subjectOf(successCheck), { status, message, expected });
  const secrets = session.context.checkSecrets ?? {};
  const filled = fillSecrets(successCheck, secrets);
  if ("problem" in filled) return result("skip", describeProblem(filled.problem));
  const hasSecrets = secretNamesOf([successCheck]).length > 0;
  if (hasSecrets && session.fetcher.guard.findMappedUrl(url) !== null)
    return result("skip", `the urlMap maps ${new URL(url).host}, and secrets are only sent to the host of the check`);
  const fetchResult = await fetchUrl(
    session.fetcher,
    {
      url: filled.url,
      method,
      headers: filled.headers,
      body: filled.body,
      provenance: "given",
      foundOn: null,
      purpose: "check",
      ...(hasSecrets && { follow: "same_origin", reportedUrl: url }),
    },
    log,
  );
  if (!fetchResult.ok) {
    const message = withoutCheckSecrets(fetchResult.message, secrets);
    return result(inconclusiveKinds.has(fetchResult.kind) ? "skip" : "fail", message);
  }
  const request = method === "GET" ? url : `${method} ${url}`;
  const { status } = fetchResult.response;
  if (status !== expectedStatus) return result("fail", `${request} returned status ${status}, not ${expectedStatus}`);
  if (contains !== undefined && !fetchResult.text().includes(contains))
    return result("fail", `${request} returned status ${status}, but not the text "${cut(contains, 100)}"`);
  const problem = json && findJsonProblem(fetchResult.text(), json, hasSecrets);
  if (problem) return result("fail", `${request} returned status ${status}, but ${problem}`);
  return result("pass", `${request} returned ${expected}`);
}

/** Why a check can't run if its secret is not filled in. */
export const describeProblem = ({ name, host, hosts }: SecretProblem): string =>
  host === null
    ? `the secret ${name} is missing or can't be decrypted; store it with evald secret set ${name}`
    : `the secret ${name} may only be sent to ${hosts.join(", ")}, not to ${host}`;

/** Identifies the check. It is the same before and after the agent's work, and differs from the subjects of other checks. */
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

/** How a response differs from the expected JSON; null: it doesn't. `hasSecrets`: it may repeat a secret, so it isn't quoted. */
function findJsonProblem(text: string, json: JsonExpectation, hasSecrets: boolean): string | null {
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
  if (hasSecrets) return `the value at ${name} isn't ${cut(JSON.stringify(equals), 100)}`;
  return `the value at ${name} is ${describeValue(value)}, not ${cut(JSON.stringify(equals), 100)}`;
}

function describeValue(value: unknown): string {
  if (Array.isArray(value)) return "an array";
  return value !== null && typeof value === "object" ? "an object" : cut(JSON.stringify(value), 100);
}

/** The empty pointer names the whole document. */
const nameOf = ({ pointer }: JsonExpectation): string => (pointer === "" ? "the root" : cut(pointer, 100));
