import { resolveRef } from "../agents/explorer/api-references.ts";
import { type Fields, object, text } from "../agents/fields.ts";
import { type Candidate, type Drop, needsOf } from "./candidate.ts";
import type { ProposalSource, TaskProposal } from "./proposal.ts";

/** `definition`: the operation as it is written in the description. */
type Operation = { method: string; path: string; summary: string; definition: Fields };
/** `server`: the URL of its first server, without a slash at the end. */
type Api = { url: string; document: Fields; server: string | null; operations: Operation[] };

/** A value that no other record has. So finding it proves that the task created the record. */
const createdName = "evald-task-7f3a";
/** A summary that says what is created. "Search points" doesn't, and "Create rule(s)" is not a task. */
const creation =
  /^(create|add|register|insert|upload|publish|import|index|store|make|define|generate|start|schedule)s?\b[^()[\]{}<>]+$/i;
/** The most telling error first. */
const documentedErrors = ["409", "422", "400"];

/**
 * Candidates from OpenAPI descriptions: create and read back, then delete, and handle a documented error. Operations whose response isn't JSON are
 * left out. Operations that guides mention come first.
 */
export function candidatesOfOperations(source: ProposalSource, drop: Drop): Candidate[] {
  const guides = source.pages.map(({ markdown }) => markdown).join("\n");
  return source.apiDescriptions.flatMap(({ url, document }) => {
    const api = toApi(url, object(document));
    return api.operations
      .filter(({ method }) => method === "post")
      .flatMap((operation) => candidatesOf(operation, api, source, { guides, drop }));
  });
}

function toApi(url: string, document: Fields): Api {
  const operations = Object.entries(object(document.paths)).flatMap(([path, item]) =>
    Object.entries(object(item))
      .filter(([method]) => /^(get|post|put|patch|delete)$/.test(method))
      .map(([method, operation]) => {
        const definition = object(operation);
        const summary = (text(definition.summary) || text(definition.description)).split(/[.\n]/)[0]!.trim();
        return { method, path, summary, definition };
      }),
  );
  const [firstServer] = (document.servers as unknown[] | undefined) ?? [];
  // The URL may be relative to the description.
  const serverUrl = URL.parse(text(object(firstServer).url), url);
  return { url, document, server: serverUrl?.href.replace(/\/$/, "") ?? null, operations };
}

function candidatesOf(
  operation: Operation,
  api: Api,
  source: ProposalSource,
  { guides, drop }: { guides: string; drop: Drop },
): Candidate[] {
  const { path, summary, definition } = operation;
  if (!returnsJson(definition, api.document)) {
    drop("not_json");
    return [];
  }
  const readOne = api.operations.find(({ method, path: other }) => method === "get" && isItemOf(other, path));
  const error = documentedErrors.find((status) => status in object(definition.responses));
  const hasResult = readOne !== undefined || error !== undefined;
  if (!creation.test(summary) || definition.deprecated === true || !hasResult) {
    drop("no_action");
    return [];
  }
  const deleteOne = api.operations.find(({ method, path: other }) => method === "delete" && other === readOne?.path);
  const isInGuides = guides.includes(path) || guides.toLowerCase().includes(nounOf(path));
  // Operations with a short path are the main ones.
  const score = 4 - path.split("/").length / 2 + (isInGuides ? 2 : 0);
  const subject = { operation, api, source };
  const candidates: Candidate[] = [];
  if (readOne !== undefined) candidates.push(readBackCandidate(subject, score));
  if (deleteOne !== undefined) candidates.push({ score: score - 1, proposal: deleteProposal(subject) });
  // Nearly every operation has the error 400, so handling it is not a separate task.
  if (error !== undefined && error !== "400")
    candidates.push({ score: score - 1.5, proposal: errorProposal(subject, error) });
  return candidates;
}

/** The operation that creates something, and where it is described. */
type Subject = { operation: Operation; api: Api; source: ProposalSource };

/** It counts more if it has a check that proves it. */
function readBackCandidate(subject: Subject, score: number): Candidate {
  const proposal = toProposal(subject, {
    title: `${subject.operation.summary}, then read it back`,
    result: "the response of reading it back",
    tag: "core",
  });
  const check = readBackCheck(subject.operation, subject.api);
  if (check === null) return { score, proposal };
  const text = `${proposal.text} Name it ${createdName}.`;
  return { score: score + 1, proposal: { ...proposal, text, declaredChecks: [check] } };
}

const deleteProposal = (subject: Subject): TaskProposal =>
  toProposal(subject, {
    title: `${subject.operation.summary}, then delete it again`,
    result: "the response of reading it after that",
    tag: "cleanup",
  });

const errorProposal = (subject: Subject, status: string): TaskProposal =>
  toProposal(subject, {
    title: `${subject.operation.summary}, and handle the error ${status} that this can return`,
    result: "the error and how to handle it",
    tag: "errors",
  });

/** A task about an operation. `result`: what the agent has to write to a file. */
type OperationTask = { title: string; result: string; tag: string };

function toProposal({ operation, api, source }: Subject, { title, result, tag }: OperationTask): TaskProposal {
  const needs = needsOf(title, "");
  return {
    title: title.slice(0, 200),
    text: `${title} through the API of ${source.product}. Write ${result} to result.json.`,
    endGoal: `result.json has ${result}, as the API of ${source.product} answered.`,
    additionalUrls: [{ url: source.docsUrl }],
    tags: [tag],
    declaredChecks: [],
    checksNotRun: null,
    hints: [],
    needs: needsKey(operation, api) ? ["account", "secret", ...needs] : needs,
    by: "rules",
    source: { url: api.url, line: 1, quote: operation.summary },
    docsOwnWords: true,
    why: "operation",
  };
}

/** Whether an operation needs a key. It needs none if it has no requirements or if one of the alternative requirements is empty. */
const needsKey = ({ definition }: Operation, { document }: Api): boolean => {
  const requirements = definition.security ?? document.security;
  if (!Array.isArray(requirements) || requirements.length === 0) return false;
  return requirements.every((each) => Object.keys(object(each)).length > 0);
};

/** The request that lists what was created. The created record must have a name, and the list must need no value except a key. */
function readBackCheck({ path, definition }: Operation, api: Api): TaskProposal["declaredChecks"][number] | null {
  const list = api.operations.find((other) => other.method === "get" && other.path === path);
  const { content } = object(resolveRef(api.document, definition.requestBody));
  const { schema } = object(object(content)["application/json"]);
  const { properties } = object(resolveRef(api.document, object(schema)));
  const hasName = "name" in object(properties);
  if (!list || path.includes("{") || api.server === null || !hasName) return null;
  const url = `${api.server}${path}`;
  if (!needsKey(list, api)) return { url, contains: createdName };
  const schemes = Object.values(object(object(api.document.components).securitySchemes)).map(object);
  const bearer = schemes.find(({ type, scheme }) => type === "http" && scheme === "bearer");
  const key = schemes.find((scheme) => scheme.type === "apiKey" && scheme.in === "header");
  if (bearer) return { url, headers: { Authorization: "Bearer {{secret.API_KEY}}" }, contains: createdName };
  return key ? { url, headers: { [text(key.name)]: "{{secret.API_KEY}}" }, contains: createdName } : null;
}

function returnsJson({ responses }: Fields, document: Fields): boolean {
  return Object.entries(object(responses)).some(([status, response]) => {
    const { content } = object(resolveRef(document, response));
    return status.startsWith("2") && Object.keys(object(content)).some((type) => type.includes("json"));
  });
}

const isItemOf = (path: string, collection: string): boolean =>
  path.startsWith(`${collection}/{`) && !path.slice(collection.length + 1).includes("/");

const nounOf = (path: string): string =>
  path
    .split("/")
    .findLast((part) => part !== "" && !part.startsWith("{"))
    ?.toLowerCase() ?? "";
