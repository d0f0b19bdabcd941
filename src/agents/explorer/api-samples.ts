import type { Check } from "../agent.ts";
import type { CodeSample } from "../page.ts";
import { cut, type ReadPage, type Session, type Steps, toCheck, useTool } from "./session.ts";

/** A parsed API description: OpenAPI 3 or Swagger 2. */
export type ApiDescription = { url: string; document: Record<string, unknown> };

/** An API call in a sample; `fields` are the property names in its JSON body, null if unknown. */
type Call = { method: string; url: URL; fields: string[] | null; line: number };

type Schema = {
  $ref?: string;
  properties?: Record<string, unknown>;
  required?: string[];
  allOf?: Schema[];
  additionalProperties?: unknown;
};

/** Checks the API calls in samples against the API descriptions of the docs. */
export async function* checkApiSamples(session: Session, pages: ReadPage[], contracts: ApiDescription[]): Steps {
  if (contracts.length === 0) return;
  for (const page of pages.filter(({ problem, samples }) => problem === null && samples.length > 0)) {
    const calls = page.samples.flatMap((sample) => callsOf(sample).map((call) => ({ call, sample })));
    const judged = calls.flatMap(({ call, sample }) => {
      const problem = contracts.map((contract) => judgeCall(contract, call)).find((verdict) => verdict !== null);
      return problem ? [{ call, sample, ...problem }] : [];
    });
    if (judged.length === 0) continue;
    yield* useTool(session, "check_api_samples", { url: page.url }, async () => {
      const bad = judged.filter(({ message }) => message !== "");
      const good = judged.length - bad.length;
      const checks = bad.map(({ call, sample, message, contract }) => failureOf(page, call, sample, message, contract));
      if (good > 0) checks.push(passOf(page, good));
      return {
        ok: true,
        output: { url: page.url, calls: judged.length, contradictions: bad.length },
        checks,
        value: undefined,
      };
    });
  }
}

const passOf = (page: ReadPage, count: number): Check =>
  toCheck({
    ...{ id: "sample-matches-api", group: "sample", status: "pass", weight: count, subject: page.url },
    message: `${count} ${count === 1 ? "call" : "calls"} on this page match the API description`,
  });

const failureOf = (
  page: ReadPage,
  { method, url, line }: Call,
  { code }: CodeSample,
  message: string,
  contract: string,
): Check =>
  toCheck({
    ...{ id: "sample-matches-api", group: "sample", status: "fail", url: page.url, line },
    subject: `${page.url}#${method} ${url.pathname}`,
    message: `${method} ${url.pathname}: ${message} (${contract})`,
    fix: "Fix the sample or the API description, whichever is wrong.",
    quote: cut(code.trim(), 300),
  });

const methods = "get|post|put|patch|delete|head|options";

/** Options of curl with a quoted value. */
const valueOptions =
  /\s(?:-d|--data(?:-raw|-binary|-urlencode)?|--json|-F|--form|-H|--header)[\s=]*\$?(?:'[^']*'|"(?:[^"\\]|\\.)*")/g;

/**
 * Calls with curl, fetch, and clients with one function per method: `requests.post(url, json={…})`, `axios.get(url)`.
 */
function callsOf({ code, line }: CodeSample): Call[] {
  const calls: Call[] = [];
  const add = (method: string, address: string, rest: string, at: number, body: RegExpExecArray | null) => {
    const url = URL.parse(
      address.replace(/\{(\w+)\}|<(\w+)>|:(\w+)(?=\/|$)/g, (whole, a, b) => (a || b ? "x" : whole)),
    );
    if (url === null || !/^https?:$/.test(url.protocol)) return;
    const fields = body ? fieldsOf(rest.slice(body.index + body[0].length)) : null;
    calls.push({ method: method.toUpperCase(), url, fields, line: line + code.slice(0, at).split("\n").length });
  };
  const commands = code.replace(/\\\n/g, "  ");
  for (const match of commands.matchAll(/(?:^|[\s|;&(])curl\s([^\n]*(?:\n(?!\s*(?:curl|\$)\b)[^\n]*)*)/g)) {
    const [, rest = ""] = match;
    // A URL in a body or header is not the one that is called.
    const address = /["']?(https?:\/\/[^\s"'\\]+)/.exec(rest.replace(valueOptions, " "))?.[1];
    if (!address) continue;
    const body = /(?:-d|--data(?:-raw|-binary)?|--json)[\s=]+\$?["']?/.exec(rest);
    const method =
      /(?:-X\s*|--request[\s=]+)["']?([A-Za-z]+)/.exec(rest)?.[1] ??
      (body ? "POST" : /\s(-I|--head)\b/.test(rest) ? "HEAD" : "GET");
    add(method, address, rest, match.index, body);
  }
  for (const match of code.matchAll(
    new RegExp(`\\b(fetch|\\w+\\.(${methods}))\\(\\s*[\`"'](https?://[^\`"'\\s]+)[\`"']`, "gi"),
  )) {
    const [whole, , own, address = ""] = match;
    const rest = code.slice(match.index + whole.length, match.index + whole.length + 2000).split(/\n\s*\n/)[0] ?? "";
    const method = own ?? /\bmethod:\s*["'](\w+)/.exec(rest)?.[1] ?? "GET";
    add(method, address, rest, match.index, /JSON\.stringify\(\s*|\bjson=\s*|^,\s*(?=\{)/.exec(rest));
  }
  return calls;
}

/** The property names of the outermost object of a JSON, JavaScript or Python body; null if it isn't a literal. */
function fieldsOf(text: string): string[] | null {
  if (!text.trimStart().startsWith("{")) return null;
  const fields: string[] = [];
  let depth = 0;
  for (const match of text.matchAll(
    /"((?:[^"\\\n]|\\.)*)"(\s*:)?|'((?:[^'\\\n]|\\.)*)'(\s*:)?|\b([A-Za-z_]\w*)\s*:|\.\.\.|[{}[\]()]/g,
  )) {
    const [token] = match;
    if (token === "...") return null;
    if ("{[(".includes(token)) depth++;
    else if ("}])".includes(token)) {
      if (--depth === 0) return fields;
    } else if (depth === 1) {
      const name = match[2] ? match[1] : match[4] ? match[3] : match[5];
      if (name !== undefined) fields.push(name);
    }
  }
  return null;
}

/** How a call violates a description, "" if it doesn't; null if the call belongs to another API. */
function judgeCall({ url, document }: ApiDescription, call: Call): { message: string; contract: string } | null {
  const paths = asObject(document.paths);
  for (const server of serversOf(url, document)) {
    const prefix = server.pathname.replace(/\/$/, "");
    if (server.origin !== call.url.origin || !`${call.url.pathname}/`.startsWith(`${prefix}/`)) continue;
    const rest = call.url.pathname.slice(prefix.length) || "/";
    const path = Object.keys(paths)
      .filter((template) => matches(template, rest))
      .sort((a, b) => a.split("{").length - b.split("{").length)[0];
    if (path === undefined) return { message: "the API description has no such path", contract: url };
    const operations = asObject(paths[path]);
    if (operations.$ref !== undefined) return null;
    const operation = operations[call.method.toLowerCase()];
    if (operation === undefined)
      return { message: `the API description has no ${call.method} for ${path}`, contract: url };
    return {
      message: call.fields === null ? "" : judgeFields(document, asObject(operation), call.fields),
      contract: url,
    };
  }
  return null;
}

function serversOf(url: string, { servers, host, basePath, schemes }: Record<string, unknown>): URL[] {
  if (typeof host === "string") {
    const all = Array.isArray(schemes) && schemes.length > 0 ? schemes : ["https"];
    return all.flatMap(
      (scheme) => URL.parse(`${scheme}://${host}${typeof basePath === "string" ? basePath : ""}`) ?? [],
    );
  }
  const serverList = Array.isArray(servers) ? servers : [{ url: "/" }];
  return serverList.flatMap((server) => URL.parse(String(asObject(server).url ?? ""), url) ?? []);
}

function matches(template: string, path: string): boolean {
  const [a, b] = [template, path].map((each) => each.replace(/\/$/, "").split("/"));
  return a!.length === b!.length && a!.every((part, at) => (/\{.*\}/.test(part) ? b![at] !== "" : part === b![at]));
}

function judgeFields(document: Record<string, unknown>, operation: Record<string, unknown>, fields: string[]): string {
  const content = asObject(asObject(operation.requestBody).content);
  const inBody = Array.isArray(operation.parameters)
    ? operation.parameters.map(asObject).find((each) => each.in === "body")
    : undefined;
  const schema = resolve(
    document,
    (asObject(content["application/json"]).schema ?? inBody?.schema) as Schema | undefined,
  );
  if (schema === null) return "";
  const propertyNames = Object.keys(schema.properties ?? {});
  const unknown =
    schema.additionalProperties === true || propertyNames.length === 0
      ? []
      : fields.filter((name) => !propertyNames.includes(name));
  const missing = (schema.required ?? []).filter((name) => !fields.includes(name));
  return [
    unknown.length > 0 &&
      `the body has ${unknown.map((name) => `“${name}”`).join(", ")}, which the API description does not define`,
    missing.length > 0 &&
      `the body lacks ${missing.map((name) => `“${name}”`).join(", ")}, which the API description requires`,
  ]
    .filter((text) => text !== false)
    .join("; ");
}

/** A schema with its references within the document resolved; null if they can't be resolved. */
function resolve(document: Record<string, unknown>, schema: Schema | undefined, depth = 0): Schema | null {
  if (schema === undefined || schema === null || depth > 10) return null;
  if (typeof schema.$ref === "string") {
    const target = schema.$ref
      .replace(/^#\//, "")
      .split("/")
      .reduce<unknown>((at, key) => asObject(at)[key.replaceAll("~1", "/").replaceAll("~0", "~")], document);
    return schema.$ref.startsWith("#/") ? resolve(document, target as Schema | undefined, depth + 1) : null;
  }
  if ("oneOf" in schema || "anyOf" in schema) return null;
  if (!schema.allOf) return schema;
  const parts = [{ ...schema, allOf: undefined }, ...schema.allOf.map((part) => resolve(document, part, depth + 1))];
  if (parts.some((part) => part === null)) return null;
  return {
    properties: Object.assign({}, ...parts.map((part) => part!.properties ?? {})),
    required: parts.flatMap((part) => part!.required ?? []),
    additionalProperties: parts.some((part) => part!.additionalProperties === true),
  };
}

const asObject = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
