import type { SessionEvent } from "../../agents/agent.ts";
import { commandsOf } from "../call-actions.ts";
import { type EventOf, type Http, hasSucceeded, milestonesOf } from "../events.ts";
import { hostsOf } from "../hosts.ts";

/** The words of a text, without quotes, brackets and white space, which programs change. A space surrounds each word. */
const normalizeWords = (text: string): string =>
  ` ${(text.normalize("NFKC").match(/[\p{L}\p{N}_]+/gu) ?? []).join(" ")} `;

/** All strings in a JSON value. Keys are skipped because evald chose them. */
function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return value !== null && typeof value === "object" ? Object.values(value).flatMap(textsIn) : [];
}

/** Tools of the agent's machine whose results contain its own text, or a page: never what the product did. */
const actingTools = ["run_command", "http_request", "browse"];
const pageTools = ["fetch_page", "search_docs", "open_page"];

/** Programs that print, compute, read or run what the agent wrote, so their output proves nothing about the product. */
const genericPrograms = new Set(
  `echo printf cat head tail tee sed awk gawk grep egrep rg cut tr sort uniq seq date uuidgen base64 xxd od openssl md5sum sha256sum shasum
  jq yq python python2 python3 node bun deno ruby perl php lua sh bash zsh dash ash ksh java go cargo make npm-run nc netcat socat curl wget http
  https ls find stat wc cd pwd mkdir touch cp mv rm ln chmod export set env which type true false sleep test expr let bc dc rev fold paste
  column yes xargs eval source . time timeout nohup setsid kill ps`.split(/\s+/),
);

const runsScripts = (program: string, verb: string): boolean =>
  /^(npm|yarn|pnpm)$/.test(program) && !/^(i|install|ci|add|view|info|ls|list|pack|publish|init|create)$/.test(verb);

/** Whether a command runs a program that the agent didn't write itself. */
function runsForeignProgram(command: string, written: string[]): boolean {
  // A function or alias can shadow any program.
  if (/\(\)\s*\{|\balias\b|\bfunction\b|<<|\bPATH=/.test(command)) return false;
  return commandsOf(command).some(({ path, program, verb }) => {
    const isOwn =
      genericPrograms.has(program) || runsScripts(program, verb) || written.some((text) => text.includes(program));
    return program !== "" && !isOwn && !(path.includes("/") && !/^\/(usr\/)?(local\/)?s?bin\//.test(path));
  });
}

/**
 * Whether an event proves that something was done. Its quote must appear in the product's own response, with status
 * 2xx, to a request observed during the same call. If no product is known and the command sent no request, it must
 * appear in the output of a program that the agent didn't write. Text that the agent wrote or read on a page first
 * proves nothing.
 */
export function createProof(session: SessionEvent[]): (event: SessionEvent, quote: string) => boolean {
  const { starts = [], product = null } = milestonesOf(session, "started").at(-1)?.detail ?? {};
  const requests = session.filter((e): e is Http => e.type === "http" && e.purpose !== "check");
  const hosts = hostsOf(starts, product, requests);
  const calls = new Map(session.flatMap((e) => (e.type === "tool_call" ? [[e.id, e] as const] : [])));
  const isProductAnswer = (http: Http) => {
    const isSuccess = http.status !== null && http.status >= 200 && http.status < 300 && http.method !== "CONNECT";
    return isSuccess && hosts.isProduct(http);
  };
  const normalizedTexts = new Map<string, string>();
  const contains = (text: string, words: string): boolean => {
    const normalized = normalizedTexts.get(text) ?? normalizeWords(text);
    normalizedTexts.set(text, normalized);
    return normalized.includes(words);
  };
  const requestsByCall = Map.groupBy(requests, ({ id }) => id);

  /** The product's responses observed during one call. */
  function answersOf(result: EventOf<"tool_result">): string[] {
    const productAnswers = (requestsByCall.get(result.id) ?? []).filter(isProductAnswer);
    if (productAnswers.length === 0) return [];
    if (result.tool === "http_request") return textsIn(result.output?.body);
    if (result.tool === "browse") return textsIn(result.output?.text);
    return productAnswers.flatMap(({ body }) => body ?? []);
  }

  /** Whether an event's text comes from the agent or a page. */
  function isAgentOrPageText(event: SessionEvent): boolean {
    if (event.type === "tool_call") return true;
    if (event.type === "message") return event.id === undefined;
    if (event.type !== "tool_result") return false;
    if (pageTools.includes(event.tool)) return true;
    const responses = (requestsByCall.get(event.id) ?? []).filter((http) => http.status !== null);
    return responses.length > 0 && responses.every((http) => !hosts.isProduct(http) && http.method !== "CONNECT");
  }

  /** Whether the agent or a page used the words before the product did, until the event with this seq. */
  function appearsFirstInOtherText(words: string, until: number): boolean {
    for (const event of session) {
      if (event.seq > until) return false;
      if (event.type === "tool_result" && answersOf(event).some((text) => contains(text, words))) return false;
      if (event.type === "http" && isProductAnswer(event) && event.body !== undefined && contains(event.body, words))
        return false;
      if (!isAgentOrPageText(event)) continue;
      const fields = event.type === "tool_call" ? event.input : event.type === "message" ? event.text : null;
      const value = event.type === "tool_result" ? event.output : fields;
      if (textsIn(value).some((text) => contains(text, words))) return true;
    }
    return false;
  }

  return (event, quote) => {
    const words = normalizeWords(quote);
    if (words.trim().length < 4) return false;
    if (event.type === "http") {
      const isQuoted =
        event.id !== null && isProductAnswer(event) && event.body !== undefined && contains(event.body, words);
      return isQuoted && !appearsFirstInOtherText(words, event.seq);
    }
    if (event.type !== "tool_result" || !actingTools.includes(event.tool) || !hasSucceeded(event)) return false;
    if (appearsFirstInOtherText(words, event.seq)) return false;
    const texts = textsIn([event.output?.stdout, event.output?.stderr, event.output?.body, event.output?.text]);
    if (!texts.some((text) => contains(text, words))) return false;
    if (answersOf(event).some((text) => contains(text, words))) return true;
    const command = calls.get(event.id)?.input?.command;
    const isLocal = product === null && event.tool === "run_command" && typeof command === "string";
    const written = [...calls.values()]
      .filter(({ seq, tool }) => seq < event.seq && tool === "write_file")
      .map(({ input }) => String(input?.path ?? ""));
    return isLocal && runsForeignProgram(command, written);
  };
}
