import type { SessionEvent } from "../../agents/agent.ts";
import type { Http } from "../events.ts";
import { type Hosts, hostsOfSession, isWrite } from "../hosts.ts";
import { valueTextsIn } from "../text.ts";
import { lettersAndDigitsOf, parseJson, tokensOf, valuesOf } from "./repetition.ts";

/** A response with which the product says that it did what a request asked for. */
export type ProductAnswer = {
  http: Http;
  text: string;
  /** Its tokens that may be values of the product, with only their letters and digits. */
  values: Set<string>;
};

/** Methods whose responses say nothing about what a request did. */
const proofless = /^(CONNECT|OPTIONS|HEAD|TRACE)$/i;
const isRead = ({ method }: Http) => /^GET$/i.test(method);

/** A change of the protocol is how a WebSocket starts; its body is what the server sent. */
const isSuccess = ({ status }: Http) => status !== null && ((status >= 200 && status < 300) || status === 101);

/** A field, parameter or option that asks for no effect, unless it is turned off. */
const dryRunName = "(?:dry[-_]?run|validate[-_]?only|what[-_]?if)";
const dryRunField = new RegExp(`${dryRunName}["']?\\s*[:=](?!\\s*["']?(?:false|0|no)\\b)`, "i");
const dryRunFlag = new RegExp(`(?:^|[\\s?&])-*${dryRunName}(?:[\\s&]|$)`, "i");
const apiDescription = /^[\s{]*["']?(?:openapi|swagger)["']?\s*:/;

const errorNames = ["error", "errors", "fault", "exception"];
const xmlDeclaration = String.raw`<\?xml[^>]*>\s*`;
const soapEnvelope = String.raw`<(?:\w+:)?Envelope\b[\s\S]*?`;
/** An XML or SOAP text whose first element says why something failed. */
const leadingFault = new RegExp(
  String.raw`^\s*(?:${xmlDeclaration})?(?:${soapEnvelope})?<(?:\w+:)?(?:${errorNames.join("|")})\b`,
  "i",
);

/** A path, operation or field that deletes: `/delete` or `remove_file`, but not `deleted` or `removes`. */
const deletion = /(?<![\p{L}\p{N}])(?:delete|remove|destroy|purge)(?!d|s\b)/iu;

/** A JSON text, which may be cut, whose first field is an error. */
const leadingError = new RegExp(
  String.raw`^\s*\{\s*"(?:${errorNames.join("|")})"\s*:\s*(?!null|false|""|\[\s*\]|\{\s*\})\S`,
  "i",
);

/** Whether a response says in its body that it failed, whatever its status is. */
function saysFailure(text: string): boolean {
  if (leadingFault.test(text) || leadingError.test(text)) return true;
  const json = parseJson(text);
  if (json === null || typeof json !== "object") return false;
  const fields = new Map(Object.entries(json).map(([name, value]) => [lettersAndDigitsOf(name), value]));
  const isFalse = ["ok", "success", "succeeded"].some((name) => fields.get(name) === false);
  const hasError = errorNames.some((name) => isFilled(fields.get(name)));
  const isErrorStatus = ["status", "statuscode"].some((name) => {
    const status = Number(fields.get(name));
    return status >= 400 && status < 600;
  });
  // A code alone may not be an error code. It may be the code of a coupon, for example.
  const hasMessage = ["message", "msg", "errmsg", "detail", "title", "reason"].some((name) =>
    isFilled(fields.get(name)),
  );
  const hasErrorCode =
    isErrorStatus || (hasMessage && ["code", "errcode", "errno"].some((name) => Number(fields.get(name)) >= 400));
  const states = ["status", "state", "result"].map((name) => fields.get(name));
  const hasFailedState = states.some((state) => typeof state === "string" && /^(error|fail)/i.test(state));
  return isFalse || hasError || hasErrorCode || hasFailedState;
}

const isFilled = (value: unknown) =>
  Boolean(value) && (typeof value !== "object" || Object.keys(value as object).length > 0);

/** The product's answers in a session, by the event of the request, and by the call that made it. */
export type ProductAnswers = {
  byRequest: Map<number, ProductAnswer>;
  byCall: Map<string | null, ProductAnswer[]>;
  hosts: Hosts;
};

/** Finds the product's answers. Pages for everyone, reports of a failure, responses to dry runs and what a later request deleted don't count. */
export function productAnswersOf(session: SessionEvent[]): ProductAnswers {
  const requests = session.filter((event): event is Http => event.type === "http" && event.purpose !== "check");
  const hosts = hostsOfSession(session, requests);
  const calls = new Map(session.flatMap((e) => (e.type === "tool_call" ? [[e.id, e] as const] : [])));
  const results = new Map(session.flatMap((e) => (e.type === "tool_result" ? [[e.id, e] as const] : [])));
  const firstWrite = requests.find((http) => isSuccess(http) && isWrite(http) && hosts.isKnownProduct(http))?.seq;

  function textOf(http: Http): string | undefined {
    const result = http.id === null ? undefined : results.get(http.id);
    const output = result?.output;
    if (result?.tool === "http_request") return typeof output?.body === "string" ? output.body : undefined;
    // The page that is open shows what the product answered to its navigation.
    const isOpen = result?.tool === "browse" && typeof output?.text === "string" && isSamePage(output.url, http.url);
    return isOpen ? `${http.body ?? ""}\n${output.text}` : http.body;
  }

  /** The input of a call that is one request. A command may send several. */
  const inputOf = ({ id }: Http) => {
    const call = id === null ? undefined : calls.get(id);
    return call?.tool === "http_request" ? call.input : undefined;
  };

  /** Before the agent has sent the product anything, a page shows what it shows everyone. */
  const isPageForEveryone = (http: Http) =>
    isRead(http) &&
    /html|markdown/i.test(http.contentType ?? "") &&
    (firstWrite === undefined || firstWrite > http.seq);

  const answers = requests.flatMap((http): ProductAnswer[] => {
    if (http.id === null || proofless.test(http.method) || !isSuccess(http) || !hosts.isKnownProduct(http)) return [];
    const text = textOf(http);
    if (text === undefined || isPageForEveryone(http) || apiDescription.test(text)) return [];
    if (saysFailure(text) || saysFailure(http.body ?? "")) return [];
    const requestTexts = [http.url, http.sent ?? "", ...valueTextsIn(calls.get(http.id)?.input)];
    // A response may repeat the field.
    const isDryRun =
      [...requestTexts, text].some((each) => dryRunField.test(each)) ||
      requestTexts.some((each) => dryRunFlag.test(each));
    if (isDryRun) return [];
    return [{ http, text, values: valuesOf(text) }];
  });
  const deletions = requests.filter(isSuccess).flatMap((http) => findDeletion(http, inputOf(http)) ?? []);
  /** Words that the agent sent before an answer, such as the host and the version of the API. They can't name anything that the answer made. */
  const sentBefore = ({ seq }: Http) =>
    wordsOf(requests.filter((http) => http.seq <= seq).flatMap(({ url, sent = "" }) => [url, sent]));
  /** Whether a later request deleted what an answer made: it names a new value of the answer. */
  const isDeleted = ({ http, values }: ProductAnswer) => {
    const possibleDeletions = deletions.filter(({ seq, words }) => seq > http.seq && !values.isDisjointFrom(words));
    // Hardly any answer is deleted, and to read all requests before one takes long.
    if (possibleDeletions.length === 0) return false;
    const newValues = values.difference(sentBefore(http));
    return possibleDeletions.some(({ words }) => !newValues.isDisjointFrom(words));
  };
  const undeletedAnswers = answers.filter((answer) => !isDeleted(answer));
  return {
    byRequest: new Map(undeletedAnswers.map((answer) => [answer.http.seq, answer])),
    byCall: Map.groupBy(undeletedAnswers, ({ http }) => http.id),
    hosts,
  };
}

const wordsOf = (texts: string[]) => new Set(texts.flatMap(tokensOf).map(lettersAndDigitsOf));

/** A request that deletes something, with all words that may name what. */
type Deletion = { seq: number; words: Set<string> };

/** `input`: of the tool call that sent the request, if it shows the body. */
function findDeletion({ seq, method, url, sent = "" }: Http, input: unknown): Deletion | null {
  const [_headers, ...sentBody] = sent.split("\n\n");
  const bodies = [sentBody.join("\n\n"), ...valueTextsIn(input)];
  const operations = [url, ...bodies.flatMap(operationsOf)];
  const isDeletion = /^DELETE$/i.test(method) || operations.some((text) => deletion.test(text));
  return isDeletion ? { seq, words: wordsOf([url, ...bodies]) } : null;
}

/** The parts of a request's body that may name an operation: its field names and its query, or all of a body that isn't JSON. */
function operationsOf(body: string): string[] {
  const json = parseJson(body);
  if (json === undefined) return [body];
  const namesIn = (value: unknown): string[] =>
    value !== null && typeof value === "object"
      ? Object.entries(value).flatMap(([name, each]) => [
          ...(Array.isArray(value) ? [] : [name]),
          ...(name === "query" && typeof each === "string" ? [each] : namesIn(each)),
        ])
      : [];
  return namesIn(json);
}

function isSamePage(shown: unknown, requested: string): boolean {
  const [a, b] = [URL.parse(String(shown)), URL.parse(requested)];
  return a !== null && b !== null && a.origin === b.origin && a.pathname === b.pathname;
}
