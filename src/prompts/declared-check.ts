import { permitsHost, secretNamesIn } from "../agents/check-secrets.ts";
import { invalidField } from "../errors.ts";
import { managedHeaders } from "../net/guarded.ts";
import { checkHttpUrl } from "../schema.ts";
import type { DeclaredCheck } from "./check-schema.ts";
import { checkVariables, leavesWorkspace } from "./workspace-check.ts";

/** The fields that only one kind of check has. */
const ownFields = {
  url: ["method", "headers", "body", "status", "json"],
  command: ["env", "exitCode"],
} as const;

/** The hosts to which a secret may be sent. null: any host. undefined: the organization has no secret of this name. */
type FindSecretHosts = (name: string) => readonly string[] | null | undefined;

/** Throws bad_request, which names the field. */
export function checkDeclaredCheck(field: string, check: DeclaredCheck, findSecretHosts: FindSecretHosts): void {
  const { url, command, file, env, json } = check;
  if ([url, command, file].filter((each) => each !== undefined).length !== 1)
    throw invalidField(field, "set exactly one of url, command and file");
  for (const kind of ["url", "command"] as const)
    for (const name of ownFields[kind])
      if (check[name] !== undefined && check[kind] === undefined)
        throw invalidField(`${field}.${name}`, `only checks with a ${kind} have it`);
  if (url !== undefined) checkHttpUrl(`${field}.url`, url);
  checkRequest(field, check);
  if (json?.exists === false && json.equals !== undefined)
    throw invalidField(
      `${field}.json`,
      "a value that must not exist can't equal something; leave out equals or exists",
    );
  checkVariables(`${field}.env`, env);
  checkSecretsOf(field, check, findSecretHosts);
  if (file !== undefined && leavesWorkspace(file))
    throw invalidField(`${field}.file`, "use a path relative to the workspace, without ..");
}

/** Throws bad_request, which names the field. */
function checkRequest(field: string, { method = "GET", headers = {}, body, contains, json }: DeclaredCheck): void {
  const managed = Object.keys(headers).find((name) => managedHeaders.includes(name.toLowerCase()));
  if (managed !== undefined) throw invalidField(`${field}.headers`, `${managed} is set by evald; leave it out`);
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  const repeated = names.find((name, i) => names.indexOf(name) !== i);
  if (repeated !== undefined) throw invalidField(`${field}.headers`, `${repeated} is there twice`);
  if (body !== undefined && (method === "GET" || method === "HEAD"))
    throw invalidField(`${field}.body`, `${method} requests have no body; use another method`);
  if (method === "HEAD" && (contains !== undefined || json !== undefined))
    throw invalidField(`${field}.${contains === undefined ? "json" : "contains"}`, "HEAD responses have no body");
}

/** The fields in which secrets are filled in. */
const secretFields = ["url", "headers", "body", "env"];
/** The beginning of a secret, even if it is misspelled as in `{{ secret.KEY }}`. */
const secretStart = /\{\{\s*secret\b/g;

/** Throws bad_request, which names the field, for an unknown secret and for one that would not be filled in or sent. */
function checkSecretsOf(field: string, check: DeclaredCheck, findSecretHosts: FindSecretHosts): void {
  const host = check.url === undefined ? null : (URL.parse(check.url)?.host ?? null);
  for (const [name, value] of Object.entries(check)) {
    const text = JSON.stringify(value);
    const starts = text.match(secretStart) ?? [];
    if (starts.length === 0) continue;
    const names = secretNamesIn(text);
    if (!secretFields.includes(name))
      throw invalidField(
        `${field}.${name}`,
        "secrets can only be in the query of a URL, in headers, in a body and in variables of a command",
      );
    if (names.length !== starts.length)
      throw invalidField(`${field}.${name}`, "write a secret as {{secret.NAME}}, without spaces");
    const unknownName = names.find((each) => findSecretHosts(each) === undefined);
    if (unknownName !== undefined)
      throw invalidField(
        `${field}.${name}`,
        `the organization has no secret named ${unknownName}; store it in Settings > Secrets, or with evald secret set ${unknownName}`,
      );
    const restrictedName = names.find((each) => host !== null && !permitsHost(findSecretHosts(each) ?? null, host));
    if (restrictedName !== undefined)
      throw invalidField(
        `${field}.${name}`,
        `the secret ${restrictedName} may only be sent to ${findSecretHosts(restrictedName)?.join(", ")}, not to ${host}`,
      );
  }
  const { url = "" } = check;
  const [beforeQuery = ""] = url.split("?", 1);
  const [, fragment = ""] = url.split("#");
  if (secretNamesIn(beforeQuery).length > 0 || secretNamesIn(fragment).length > 0)
    throw invalidField(`${field}.url`, "secrets can only be in the query of a URL, after the ?");
}
