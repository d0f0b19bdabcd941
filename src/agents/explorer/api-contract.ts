import { object } from "../fields.ts";
import { type JsonObject, resolveRef } from "./api-references.ts";
import { type Problem, violationsOf } from "./api-schema.ts";
import { type HttpCall, unknownHost } from "./http-call.ts";
import { unknownPart } from "./literals.ts";

/** A parsed API description: OpenAPI 3 or Swagger 2. */
export type ApiDescription = { url: string; document: JsonObject };

/** The names of the parameters and properties in a description, in lower case. */
export function namesIn({ document }: ApiDescription): string[] {
  const names: string[] = [];
  JSON.stringify(document, (key, value) => {
    if (key === "name" && typeof value === "string") names.push(value.toLowerCase());
    if (key === "properties" && value !== null && typeof value === "object")
      names.push(...Object.keys(value).map((name) => name.toLowerCase()));
    return value;
  });
  return names;
}

/** The operation that a call addresses, or how it misses all of them. */
type Target = { kind: "operation"; path: JsonObject; operation: JsonObject } | { kind: "none"; problem: string };

/** How a call violates a description. Empty if it doesn't; null if the call belongs to another API, or may belong to one. */
export function findProblems({ url, document }: ApiDescription, call: HttpCall): Problem[] | null {
  const target = findTarget(url, document, call);
  if (target === null) return null;
  if (target.kind === "none") return [{ message: target.problem, about: lastSegment(call.url) }];
  const parameters = [target.path.parameters, target.operation.parameters]
    .flatMap((list) => (Array.isArray(list) ? list : []))
    .map((parameter) => resolveRef(document, parameter));
  // A parameter that can't be resolved may be any parameter, so nothing that the call has or lacks is certain to be wrong.
  if (parameters.some((parameter) => parameter === null)) return [];
  const resolvedParameters = parameters.filter((parameter) => parameter !== null);
  return [
    ...queryProblems(document, target.operation, resolvedParameters, call),
    ...headerProblems(resolvedParameters, call),
    ...credentialProblems(document, target.operation, call),
    ...bodyProblems(document, target.operation, resolvedParameters, call),
  ];
}

/** The last part of a path that is written out. */
const lastSegment = (url: URL): string =>
  pathOf(url)
    .split("/")
    .findLast((part) => part !== "" && !part.includes(unknownPart)) ?? "";

/** `filter` of `filter[name]`. */
const withoutIndex = (name: unknown): string => String(name).replace(/\[.*$/s, "");

/** The decoded path of a URL. A path with an invalid percent sign stays as it is. */
function pathOf({ pathname }: URL): string {
  try {
    return decodeURI(pathname);
  } catch {
    return pathname.replaceAll(encodeURIComponent(unknownPart), unknownPart);
  }
}

/** The operation that a call addresses; null if the call belongs to another API, or may belong to one. */
function findTarget(url: string, document: JsonObject, call: HttpCall): Target | null {
  const paths = object(document.paths);
  const pathname = pathOf(call.url);
  const allServers = serversOf(url, document);
  if (call.url.hostname === unknownHost) return targetOnUnknownHost(allServers, paths, pathname, call);
  const servers = allServers.filter(({ origin }) => origin === call.url.origin);
  for (const server of servers) {
    const prefix = server.pathname.replace(/\/$/, "");
    if (!`${pathname}/`.startsWith(`${prefix}/`)) continue;
    const rest = pathname.slice(prefix.length) || "/";
    const template = findPath(paths, rest);
    if (template === undefined)
      return rest.includes(unknownPart) ? null : { kind: "none", problem: "the API description has no such path" };
    return operationAt(paths, template, call);
  }
  return misplacedPath(servers, paths, pathname);
}

function operationAt(paths: JsonObject, template: string, { method }: HttpCall): Target | null {
  const path = object(paths[template]);
  if (path.$ref !== undefined) return null;
  const operation = path[method.toLowerCase()];
  return operation === undefined
    ? { kind: "none", problem: `the API description has no ${method} for ${template}` }
    : { kind: "operation", path, operation: object(operation) };
}

/** The target of a call whose host the reader fills in. The call belongs to the API if the API has its path, alone or below the path of a server. */
function targetOnUnknownHost(servers: URL[], paths: JsonObject, pathname: string, call: HttpCall): Target | null {
  const prefixes = ["", ...servers.map((server) => server.pathname.replace(/\/$/, ""))];
  for (const prefix of prefixes) {
    const template = pathname.startsWith(`${prefix}/`) ? findPath(paths, pathname.slice(prefix.length)) : undefined;
    if (template !== undefined && hasFixedPart(template)) return operationAt(paths, template, call);
  }
  return null;
}

/** A path that the API has below another base path: `/v2/items`, `/api/v1/items` or `/items` for `/v1/items`. */
function misplacedPath(servers: URL[], paths: JsonObject, pathname: string): Target | null {
  const segments = pathname.split("/");
  for (const { pathname: base } of servers) {
    const baseSegments = base.replace(/\/$/, "").split("/");
    if (baseSegments.length < 2) continue;
    for (let length = 1; length < segments.length; length++) {
      const prefixSegments = segments.slice(0, length);
      const rest = `/${segments.slice(length).join("/")}`;
      const template = findPath(paths, rest);
      if (rest === "/" || template === undefined) continue;
      // `/v2` in place of `/v1`.
      const isOtherBase = length === baseSegments.length;
      // `/api/v1`, or nothing, in place of `/v1`.
      const isLongerOrShorter =
        (isWithin(prefixSegments, baseSegments) || isWithin(baseSegments, prefixSegments)) && hasFixedPart(template);
      const prefix = prefixSegments.join("/");
      if (prefix.includes(unknownPart) || !(isOtherBase || isLongerOrShorter)) continue;
      return { kind: "none", problem: `the API description has ${rest} below ${base}, not below ${prefix || "/"}` };
    }
  }
  return null;
}

/** Whether all parts of one path are in the other, in the same order. */
function isWithin(parts: string[], others: string[]): boolean {
  let next = 0;
  for (const other of others) if (other === parts[next]) next++;
  return next === parts.length;
}

/** A template of only parameters has the form of any path. */
const hasFixedPart = (template: string): boolean =>
  template.split("/").some((part) => part !== "" && !/\{.*\}/.test(part));

function serversOf(url: string, { servers, host, basePath, schemes }: JsonObject): URL[] {
  if (typeof host === "string") {
    const all = Array.isArray(schemes) && schemes.length > 0 ? schemes : ["https"];
    return all.flatMap(
      (scheme) => URL.parse(`${scheme}://${host}${typeof basePath === "string" ? basePath : ""}`) ?? [],
    );
  }
  const serverList = Array.isArray(servers) ? servers.map(object) : [{ url: "/" }];
  return serverList.flatMap((server) => {
    const variables = object((server as JsonObject).variables);
    const address = String(server.url ?? "").replace(/\{([^}]*)\}/g, (_, name: string) =>
      String(object(variables[name]).default ?? "x"),
    );
    return URL.parse(address, url) ?? [];
  });
}

/**
 * The template that matches a path. If several do, it is the template with the fewest parameters, then with the most fixed text, such as
 * `/items/{id}:cancel`.
 */
const findPath = (paths: JsonObject, path: string): string | undefined =>
  Object.keys(paths)
    .filter((template) => matches(template, path))
    .sort((a, b) => a.split("{").length - b.split("{").length || fixedLength(b) - fixedLength(a))[0];

const parameterInPath = /\{[^{}]*\}/;
const fixedLength = (template: string): number => template.split(parameterInPath).join("").length;

function matches(template: string, path: string): boolean {
  const [expected, given] = [template, path].map((each) => each.replace(/\/$/, "").split("/")) as [string[], string[]];
  return expected.length === given.length && expected.every((part, at) => matchesPart(part, given[at]!));
}

/** Whether a part of a path matches a part of a template. The fixed text must be the same, and parameters can be any text. */
function matchesPart(template: string, part: string): boolean {
  const fixedParts = template.split(parameterInPath);
  if (fixedParts.length === 1) return part === template;
  return new RegExp(`^${fixedParts.map(RegExp.escape).join(".+")}$`, "s").test(part);
}

const quoteNames = (names: string[]) => names.map((name) => `“${name}”`).join(", ");

/** Parameters whose description leaves names open: `filter[name]`, an object. */
const isOpenParameter = (document: JsonObject, parameter: JsonObject) =>
  parameter.content !== undefined || object(resolveRef(document, parameter.schema ?? {})).type === "object";

function queryProblems(
  document: JsonObject,
  operation: JsonObject,
  parameters: JsonObject[],
  { query, url }: HttpCall,
): Problem[] {
  if (query === null) return [];
  const declared = parameters.filter((parameter) => parameter.in === "query");
  if (declared.some((parameter) => isOpenParameter(document, parameter))) return [];
  const names = [...query].map(withoutIndex);
  const keys = requirementsOf(document, operation)
    .flat()
    .filter((scheme) => scheme.in === "query");
  const allowed = [...declared, ...keys].map(({ name }) => withoutIndex(name));
  const unknown = names.filter((name) => !allowed.includes(name));
  const missing = declared.filter(({ name, required }) => required === true && !names.includes(withoutIndex(name)));
  const problems: Problem[] = [];
  if (unknown.length > 0)
    problems.push({
      message: `the query has ${quoteNames(unknown)}, which the API description does not define`,
      about: unknown[0]!,
    });
  if (missing.length > 0)
    problems.push({
      message: `the query lacks ${quoteNames(missing.map(({ name }) => String(name)))}, which the API description requires`,
      about: lastSegment(url),
    });
  return [...problems, ...declared.flatMap((parameter) => parameterProblems(document, parameter, url))];
}

/** How a value in a URL violates the schema of its parameter. */
function parameterProblems(document: JsonObject, parameter: JsonObject, url: URL): Problem[] {
  const [value, ...others] = url.searchParams.getAll(String(parameter.name));
  // Swagger 2 has the schema in the parameter itself.
  const schema = parameter.schema ?? parameter;
  const { type } = object(resolveRef(document, schema));
  // A list may be written in several ways, and so may a boolean.
  if (value === undefined || others.length > 0 || type === "array" || type === "boolean") return [];
  const isNumber = type !== "string" && /^-?\d+(\.\d+)?$/.test(value);
  return violationsOf(document, schema, isNumber ? Number(value) : value, String(parameter.name));
}

/** The alternatives of security schemes that an operation requires; empty if it can be called without credentials. */
function requirementsOf(document: JsonObject, operation: JsonObject): JsonObject[][] {
  const requirements = operation.security ?? document.security;
  if (!Array.isArray(requirements) || requirements.some((each) => Object.keys(object(each)).length === 0)) return [];
  const schemes = object(object(document.components).securitySchemes ?? document.securityDefinitions);
  return requirements.map((each) => Object.keys(object(each)).map((name) => object(schemes[name])));
}

/** The header that a security scheme needs; null if it needs none or is unknown. */
function headerOf({ type, in: place, name }: JsonObject): string | null {
  if (type === "apiKey" && place === "header") return String(name);
  if (type === "apiKey" && place === "cookie") return "Cookie";
  const isAuthorization = type === "http" || type === "basic" || type === "oauth2" || type === "openIdConnect";
  return isAuthorization ? "Authorization" : null;
}

/** The problem of a missing header or parameter. It is reported at the first header of the request. */
const missingFieldProblem = (kind: "header" | "parameter", name: string, headers: Set<string>): Problem => ({
  message: `the request lacks the ${kind} “${name}”, which the API description requires`,
  about: [...headers][0] ?? "",
});

function headerProblems(parameters: JsonObject[], { headers }: HttpCall): Problem[] {
  if (headers === null) return [];
  return parameters
    .filter((parameter) => parameter.in === "header" && parameter.required === true)
    .map(({ name }) => String(name))
    .filter((name) => !headers.has(name.toLowerCase()))
    .map((name) => missingFieldProblem("header", name, headers));
}

/** What a call lacks for the first alternative of credentials, if it satisfies none of the alternatives. */
function credentialProblems(document: JsonObject, operation: JsonObject, { headers, query, hasCredentials }: HttpCall) {
  if (headers === null || hasCredentials) return [];
  const isSent = (scheme: JsonObject): boolean => {
    const header = headerOf(scheme);
    if (header !== null) return headers.has(header.toLowerCase());
    return scheme.in !== "query" || query === null || query.has(String(scheme.name));
  };
  const alternatives = requirementsOf(document, operation);
  if (alternatives.some((schemes) => schemes.every(isSent))) return [];
  const missing = alternatives[0]?.find((scheme) => !isSent(scheme));
  if (missing === undefined) return [];
  const header = headerOf(missing);
  return [
    header === null
      ? missingFieldProblem("parameter", String(missing.name), headers)
      : missingFieldProblem("header", header, headers),
  ];
}

function bodyProblems(document: JsonObject, operation: JsonObject, parameters: JsonObject[], call: HttpCall) {
  const { body, isForm } = call;
  const request = resolveRef(document, operation.requestBody ?? {});
  const inBody = parameters.find((each) => each.in === "body");
  if (body === undefined)
    return request?.required === true || inBody?.required === true
      ? [{ message: "the request has no body, which the API description requires", about: "" }]
      : [];
  const types = Object.keys(object(request?.content));
  if (isForm && types.length > 0 && types.every((type) => /[/+]json\b/.test(type)))
    return [{ message: "the body is a form, but the API description takes only JSON", about: "" }];
  const [, content] = Object.entries(object(request?.content)).find(([type]) => /[/+]json\b|^\*\/\*/.test(type)) ?? [];
  const schema = object(content).schema ?? inBody?.schema;
  return schema === undefined ? [] : violationsOf(document, schema, body);
}
