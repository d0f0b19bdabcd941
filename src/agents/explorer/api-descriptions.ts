import { reasonOf } from "../../errors.ts";
import type { Check } from "../agent.ts";
import { type ApiDescription, findProblems } from "./api-contract.ts";
import { isInDocs } from "./docs-folders.ts";
import { fetchUrl, findRefusal, type Log } from "./fetching.ts";
import type { HttpCall } from "./http-call.ts";
import { callsOf } from "./http-calls.ts";
import { jsonErrorIn, jsonProblem } from "./json-samples.ts";
import { cut, mapInOrder, type Session, type Steps, toCheck, useTool } from "./session.ts";

/** Common names of API descriptions, requested in the folder of the docs and at the root of its host. */
const commonNames = ["openapi.json", "openapi.yaml", "swagger.json"];
/** URLs whose path looks like an API description. */
const descriptionName = /\b(openapi|swagger)[\w.-]*\.(json|ya?ml)$/i;
const maxLinked = 5;
const maxFolders = 2;
/** Time limit for one document, in ms. */
const parseMs = 5000;

/** The first field of an API description. */
const namesItsFormat = /^\s*\{\s*["'](?:openapi|swagger)["']\s*:|^(?:openapi|swagger)\s*:/m;

type Source = { url: string; provenance: "link" | "guessed"; foundOn: string | null };

/**
 * Validates the OpenAPI and Swagger documents that pages link to, or that are at a common path. External references are
 * not followed.
 */
export async function* checkApiDescriptions(session: Session): Steps<ApiDescription[]> {
  const sources = findSources(session);
  if (sources.length === 0) return [];
  return yield* useTool(session, "check_openapi", { places: sources.map(({ url }) => url) }, async (log) => {
    const results = (
      await mapInOrder(sources, 4, log, (source, sourceLog) => checkDescription(session, source, sourceLog))
    ).filter((result) => result !== null);
    const documents = results.filter(
      ({ check }, index) => results.findIndex((other) => other.check.subject === check.subject) === index,
    );
    const checks = documents.map(({ check }) => check);
    return {
      ok: true,
      output: { documents: checks.map(({ subject, status }) => ({ url: subject, status })) },
      checks,
      value: documents.flatMap(({ check, document }) => (document ? [{ url: check.subject, document }] : [])),
    };
  });
}

function findSources(session: Session): Source[] {
  const linked = new Map<string, Source>();
  for (const page of [...session.pages, ...session.surveyed])
    for (const { url } of page.links) {
      const { origin = "", pathname = "" } = URL.parse(url) ?? {};
      if (!session.origins.has(origin) || !descriptionName.test(pathname)) continue;
      const address = url.replace(/#.*$/s, "");
      if (!linked.has(address)) linked.set(address, { url: address, provenance: "link", foundOn: page.url });
    }
  const origins = new Set(session.pages.map(({ url }) => new URL(url).origin));
  const folders = [...origins]
    .flatMap((origin) => [...(session.docsFolders.get(origin) ?? [`${origin}/`])])
    .slice(0, maxFolders);
  const guessed = [...new Set([...folders, ...folders.map((folder) => `${new URL(folder).origin}/`)])]
    .flatMap((folder) => commonNames.map((name) => `${folder}${name}`))
    .filter((url) => !linked.has(url))
    .map((url): Source => ({ url, provenance: "guessed", foundOn: null }));
  return [...linked.values().take(maxLinked), ...guessed];
}

async function checkDescription(
  session: Session,
  source: Source,
  log: Log,
): Promise<{ check: Check; document: ApiDescription["document"] | null } | null> {
  if (await findRefusal(session.fetcher, source.url, log)) return null;
  const fetchResult = await fetchUrl(session.fetcher, { ...source, purpose: "check" }, log);
  if (!fetchResult.ok || fetchResult.response.status !== 200 || /html/i.test(fetchResult.contentType ?? ""))
    return null;
  const text = fetchResult.text();
  const base = {
    id: "openapi-valid",
    group: "contract" as const,
    weight: 7,
    subject: fetchResult.response.url,
  };
  const document = parseDocument(text);
  if (document === undefined && (source.provenance === "link" || namesItsFormat.test(text)))
    return { check: toCheck({ ...base, status: "fail", ...syntaxErrorIn(text) }), document: null };
  if (typeof document !== "object" || document === null) return null;
  const namesVersion = "openapi" in document || "swagger" in document;
  if (!namesVersion && !("info" in document && "paths" in document)) return null;
  // The validator modifies its input.
  const original = structuredClone(document) as ApiDescription["document"];
  const description = { url: base.subject, document: original };
  if (source.provenance === "guessed" && !isInDocs(session, source.url) && !(await isCalled(session, description)))
    return null;
  const result = namesVersion ? await validate(document, text) : withoutVersion;
  return { check: toCheck({ ...base, ...result }), document: original };
}

/** The problem of a document that describes an API but doesn't name its format. */
const withoutVersion = {
  status: "fail" as const,
  message: "The API description lacks the field “openapi”, which says the version of its format, so programs reject it",
  fix: "Add the field, such as “openapi: 3.1.0”.",
  line: 1,
};

/** Whether a sample calls the API of a description. A description outside of the docs may be about another project of the host. */
async function isCalled({ pages, surveyed }: Session, description: ApiDescription): Promise<boolean> {
  for (const { samples } of [...pages, ...surveyed])
    for (const sample of samples) if ((await callsOf(sample)).some((call) => describes(description, call))) return true;
  return false;
}

/** Whether a call, valid or not, belongs to the API of a description. Only the calls of other APIs have null as their problems. */
const describes = (description: ApiDescription, call: HttpCall): boolean => findProblems(description, call) !== null;

/** A text that starts like JSON. YAML allows more within brackets, such as a comma before the closing bracket, but programs that read JSON don't. */
const startsLikeJson = /^\s*\{\s*"/;

/** A document in JSON or YAML; undefined if it is neither. */
export function parseDocument(text: string): unknown {
  try {
    return startsLikeJson.test(text) ? JSON.parse(text) : Bun.YAML.parse(text);
  } catch {
    return undefined;
  }
}

/** What is wrong in a text that is neither JSON nor YAML, and the line, from 1. */
function syntaxErrorIn(text: string) {
  const problem = startsLikeJson.test(text) ? jsonProblem(text) : null;
  const error = problem === null ? null : jsonErrorIn(text, problem);
  return {
    message: `The API description is neither valid JSON nor valid YAML${error === null ? "" : `: ${error.message}`}`,
    fix: "Serve the API description as valid JSON or YAML.",
    line: error?.line ?? null,
    quote: cut((error === null ? text : (text.split("\n")[error.line - 1] ?? "")).trim(), 200),
  };
}

/**
 * The line that an error is about, as the excerpt in its message marks it: `> 12 |   "type": "text"`. Groups: its number in the document as indented
 * JSON, and its text.
 */
const markedLine = /^> *(\d+) \| *(.*)$/m;
/** A message about a reference that leads nowhere. Group: the reference. */
const deadReference = /\$ref pointer "([^"]+)"/;

/** Maximum part of a message that is searched for the name of its subject. */
const maxMessageChars = 1000;
/** The operation in a message about it, such as `/paths/items/{id}/get`. Group: the path. */
const namedOperation = /\/paths(\/\S*?)\/(?:get|put|post|delete|options|head|patch|trace)\b/;

/** The line of the path of an operation that a message names; null if it names none. */
function lineOfOperation(message: string, lines: string[]): number | null {
  const path = namedOperation.exec(message.slice(0, maxMessageChars))?.[1];
  if (path === undefined) return null;
  const index = lines.findIndex((line) => line.trim().replace(/["']/g, "").startsWith(`${path}:`));
  return index < 0 ? null : index + 1;
}

/** The line of a document with the error of a message; null if unknown. */
function lineOfError(message: string, text: string): number | null {
  const lines = text.split("\n");
  const linesWith = (sought: string) => lines.flatMap((line, index) => (line.includes(sought) ? [index + 1] : []));
  const [, number = "", excerpt = ""] = markedLine.exec(message) ?? [];
  const marked = excerpt.trim();
  if (marked !== "") {
    const isAtSameLine = lines[Number(number) - 1]?.trim() === marked;
    if (isAtSameLine) return Number(number);
    // A line that occurs more than once doesn't say which one is meant.
    const [first = null, ...others] = linesWith(marked);
    return others.length === 0 ? first : null;
  }
  const reference = deadReference.exec(message)?.[1];
  if (reference === undefined) return lineOfOperation(message, lines);
  // Each line with a dead reference has to be fixed, so the first one will do.
  return linesWith(reference)[0] ?? null;
}

/** Checks a document, `text` as it was served. */
async function validate(document: object, text: string) {
  const parser = await import("@readme/openapi-parser");
  try {
    const options = { resolve: { external: false, file: false }, timeoutMs: parseMs };
    const result = await parser.validate(document as Parameters<typeof parser.validate>[0], options);
    if (result.valid)
      return {
        status: "pass" as const,
        message: `The ${result.specification ?? "API"} document is valid`,
      };
    const [first = { message: "no reason given" }, ...otherErrors] = result.errors;
    const count = 1 + otherErrors.length + result.additionalErrors;
    const [reason = "", ...excerpt] = first.message.split("\n\n");
    return {
      status: "fail" as const,
      message: `The API description is not valid (${count} ${count === 1 ? "error" : "errors"}): ${cut(reason, 300)}`,
      fix: "Fix the document and validate it in every release, because clients and agents rely on it.",
      line: lineOfError(first.message, text),
      quote: excerpt.length > 0 ? cut(excerpt.join("\n\n"), 300) : null,
    };
  } catch (caught) {
    return {
      status: "skip" as const,
      message: `The API description could not be validated: ${cut(reasonOf(caught), 200)}`,
    };
  }
}
