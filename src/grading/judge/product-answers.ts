import type { SessionEvent } from "../../agents/agent.ts";
import type { EventOf, Http } from "../events.ts";
import { hostsOfSession } from "../hosts.ts";
import { parseJson, squash, tokensOf, valuesOf } from "./repetition.ts";

/** A response with which the product says that it did what a request asked for. */
export type ProductAnswer = {
  http: Http;
  text: string;
  /** Its tokens that may be values of the product, squashed. */
  values: Set<string>;
};

const proofless = /^(CONNECT|OPTIONS|HEAD|TRACE)$/i;
const isRead = ({ method }: Http) => /^GET$/i.test(method);

/** A change of the protocol is how a WebSocket starts; its body is what the server sent. */
const isSuccess = ({ status }: Http) => status !== null && ((status >= 200 && status < 300) || status === 101);

/** A field, parameter or option that asks for no effect, unless it is turned off. */
const dryRun = /(?:dry[-_]?run|validate[-_]?only|what[-_]?if)["']?\s*[:=]\s*["']?(?!false|0|no)/i;
const dryRunFlag = /(?:^|[\s?&])-*(?:dry[-_]?run|validate[-_]?only|what[-_]?if)(?:[\s&]|$)/i;
const apiDescription = /^[\s{]*["']?(?:openapi|swagger)["']?\s*:/;

/** The element of XML and SOAP that says why something failed. */
const faultElement =
  /^\s*(?:<\?xml[^>]*>\s*)?(?:<(?:\w+:)?Envelope\b[\s\S]*?)?<(?:\w+:)?(?:error|errors|fault|exception)\b/i;

/** A path, operation or field that deletes. */
const deletion = /(?<![\p{L}\p{N}])(?:delete|remove|destroy|purge)(?!d|s\b)/iu;

/** Whether a response says in its body that it failed, whatever its status is. */
function saysFailure(text: string): boolean {
  if (faultElement.test(text)) return true;
  const json = parseJson(text);
  if (json === null || typeof json !== "object") return false;
  const fields = new Map(Object.entries(json).map(([name, value]) => [squash(name), value]));
  const isFalse = ["ok", "success", "succeeded"].some((name) => fields.get(name) === false);
  const hasError = ["error", "errors", "fault", "exception"].some((name) => isFilled(fields.get(name)));
  const hasErrorCode = ["code", "errcode", "errno", "status", "statuscode"].some(
    (name) => Number(fields.get(name)) >= 400,
  );
  const states = ["status", "state", "result"].map((name) => fields.get(name));
  return (
    isFalse ||
    hasError ||
    hasErrorCode ||
    states.some((state) => typeof state === "string" && /^(error|fail)/i.test(state))
  );
}

const isFilled = (value: unknown) =>
  Boolean(value) && (typeof value !== "object" || Object.keys(value as object).length > 0);

/** Every text in an event's fields. Keys are skipped, because evald chose them. */
export function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value === "number") return [String(value)];
  return value !== null && typeof value === "object" ? Object.values(value).flatMap(textsIn) : [];
}

/** The product's answers in a session, by the event of the request, and by the call that made it. */
export type ProductAnswers = { byRequest: Map<number, ProductAnswer>; byCall: Map<string | null, ProductAnswer[]> };

/** Finds the product's answers. An answer that repeats, refuses or only tries is none. */
export function productAnswersOf(session: SessionEvent[]): ProductAnswers {
  const requests = session.filter((event): event is Http => event.type === "http" && event.purpose !== "check");
  const hosts = hostsOfSession(session, requests);
  const calls = new Map(session.flatMap((e) => (e.type === "tool_call" ? [[e.id, e] as const] : [])));
  const results = new Map(session.flatMap((e) => (e.type === "tool_result" ? [[e.id, e] as const] : [])));
  const firstWrite = requests.find((http) => isSuccess(http) && !isRead(http) && hosts.isKnownProduct(http))?.seq;

  function textOf(http: Http): string | undefined {
    const { tool, output }: Partial<EventOf<"tool_result">> = (http.id !== null && results.get(http.id)) || {};
    if (tool === "http_request") return typeof output?.body === "string" ? output.body : undefined;
    // The page that is open shows what the product answered to its navigation.
    const isOpen = tool === "browse" && typeof output?.text === "string" && isSamePage(output.url, http.url);
    return isOpen ? `${http.body ?? ""}\n${output!.text}` : http.body;
  }

  const inputOf = ({ id }: Http) => {
    const call = id === null ? undefined : calls.get(id);
    return call?.tool === "http_request" ? call.input : undefined;
  };

  /** A page that nobody sent anything to shows what it shows everyone. */
  const isMerePage = (http: Http) =>
    isRead(http) &&
    /html|markdown/i.test(http.contentType ?? "") &&
    (firstWrite === undefined || firstWrite > http.seq);

  const answers = requests.flatMap((http): ProductAnswer[] => {
    if (http.id === null || proofless.test(http.method) || !isSuccess(http) || !hosts.isKnownProduct(http)) return [];
    const text = textOf(http);
    if (text === undefined || isMerePage(http) || apiDescription.test(text) || saysFailure(text)) return [];
    const asked = [http.url, http.sent ?? "", ...textsIn(calls.get(http.id)?.input)];
    if ([...asked, text].some((each) => dryRun.test(each)) || asked.some((each) => dryRunFlag.test(each))) return [];
    return [{ http, text, values: valuesOf(text) }];
  });
  const deletions = requests.filter(isSuccess).flatMap((http): { seq: number; words: Set<string> }[] => {
    const asked = [http.url, http.sent?.split("\n\n").slice(1).join("\n\n") ?? "", ...textsIn(inputOf(http))];
    const isDeletion = /^DELETE$/i.test(http.method) || asked.some((text) => deletion.test(text));
    return isDeletion ? [{ seq: http.seq, words: new Set(asked.flatMap(tokensOf).map(squash)) }] : [];
  });
  const standing = answers.filter(
    ({ http, values }) =>
      !deletions.some(({ seq, words }) => seq > http.seq && [...values].some((value) => words.has(value))),
  );
  return {
    byRequest: new Map(standing.map((answer) => [answer.http.seq, answer])),
    byCall: Map.groupBy(standing, ({ http }) => http.id),
  };
}

function isSamePage(shown: unknown, requested: string): boolean {
  const [a, b] = [URL.parse(String(shown)), URL.parse(requested)];
  return a !== null && b !== null && a.origin === b.origin && a.pathname === b.pathname;
}
