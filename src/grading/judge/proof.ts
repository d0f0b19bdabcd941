import type { SessionEvent } from "../../agents/agent.ts";
import { commandsOf } from "../attempts.ts";
import { type EventOf, type Http, hasWorked } from "../events.ts";
import { hostsOf } from "../hosts.ts";

/** What of a text is left when only its words count: quotes, braces and blanks that a program changes do not. */
const essence = (text: string): string => ` ${(text.normalize("NFKC").match(/[\p{L}\p{N}_]+/gu) ?? []).join(" ")} `;

/** Every text in a value, keys left out: those are ours. */
function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return value !== null && typeof value === "object" ? Object.values(value).flatMap(textsIn) : [];
}

/** Tools of the agent's own machine whose results show what it wrote, or a page: never what the product did. */
const actingTools = ["run_command", "http_request", "browse"];
const pageTools = ["fetch_page", "search_docs", "open_page"];

/** Programs that print, compute, read or run what the agent wrote. What they say is the agent's own word. */
const ownWords = new Set(
  `echo printf cat head tail tee sed awk gawk grep egrep rg cut tr sort uniq seq date uuidgen base64 xxd od openssl md5sum sha256sum shasum
  jq yq python python2 python3 node bun deno ruby perl php lua sh bash zsh dash ash ksh java go cargo make npm-run nc netcat socat curl wget http
  https ls find stat wc cd pwd mkdir touch cp mv rm ln chmod export set env which type true false sleep test expr let bc dc rev fold paste
  column yes xargs eval source . time timeout nohup setsid kill ps`.split(/\s+/),
);

const runsScripts = (program: string, verb: string): boolean =>
  /^(npm|yarn|pnpm)$/.test(program) && !/^(i|install|ci|add|view|info|ls|list|pack|publish|init|create)$/.test(verb);

/** Whether a command asks a program that the agent did not write itself. */
function asksForeignProgram(command: string, written: string[]): boolean {
  // A function or an alias may take the name of any program.
  if (/\(\)\s*\{|\balias\b|\bfunction\b|<<|\bPATH=/.test(command)) return false;
  return commandsOf(command).some(({ path, program, verb }) => {
    const isOwn = ownWords.has(program) || runsScripts(program, verb) || written.some((text) => text.includes(program));
    return program !== "" && !isOwn && !(path.includes("/") && !/^\/(usr\/)?(local\/)?s?bin\//.test(path));
  });
}

/**
 * Says whether an event proves that something was done. Its quote must stand in what the product itself answered, with status 2xx, to a
 * request that was seen to come from the same call; where no product is known and the command asked for none, in what a program said that
 * the agent did not write. What the agent wrote, or read on a page, before anything else said it, proves nothing.
 */
export function createProof(session: SessionEvent[]): (event: SessionEvent, quote: string) => boolean {
  const started = session.findLast((e) => e.type === "milestone" && e.name === "started") as
    | EventOf<"milestone">
    | undefined;
  const starts = Array.isArray(started?.detail.starts) ? started.detail.starts.map(String) : [];
  const product = typeof started?.detail.product === "string" ? started.detail.product : null;
  const requests = session.filter((e): e is Http => e.type === "http" && e.purpose !== "check");
  const hosts = hostsOf({ starts, product }, requests);
  const calls = new Map(session.flatMap((e) => (e.type === "tool_call" ? [[e.id, e] as const] : [])));
  const isAnswer = (http: Http) => {
    const isGood = http.status !== null && http.status >= 200 && http.status < 300 && http.method !== "CONNECT";
    return isGood && hosts.isProduct(http);
  };
  const essences = new Map<string, string>();
  const holds = (text: string, words: string): boolean => {
    const known = essences.get(text) ?? essence(text);
    essences.set(text, known);
    return known.includes(words);
  };
  const ofCall = Map.groupBy(requests, ({ id }) => id);

  /** What the product answered within one call, as far as it was seen. */
  function answersOf(result: EventOf<"tool_result">): string[] {
    const own = (ofCall.get(result.id) ?? []).filter(isAnswer);
    if (own.length === 0) return [];
    if (result.tool === "http_request") return textsIn(result.output?.body);
    if (result.tool === "browse") return textsIn(result.output?.text);
    return own.flatMap(({ body }) => body ?? []);
  }

  /** Whether an event is the agent's word or a page's. */
  function isWord(event: SessionEvent): boolean {
    if (event.type === "tool_call") return true;
    if (event.type === "message") return event.id === undefined;
    if (event.type !== "tool_result") return false;
    if (pageTools.includes(event.tool)) return true;
    const asked = (ofCall.get(event.id) ?? []).filter((http) => http.status !== null);
    return asked.length > 0 && asked.every((http) => !hosts.isProduct(http) && http.method !== "CONNECT");
  }

  /** Who said the words first: the product, or the agent or a page. */
  function isOwnWord(words: string, until: number): boolean {
    for (const event of session) {
      if (event.seq > until) return false;
      if (event.type === "tool_result" && answersOf(event).some((text) => holds(text, words))) return false;
      if (event.type === "http" && isAnswer(event) && event.body !== undefined && holds(event.body, words))
        return false;
      if (!isWord(event)) continue;
      const fields = event.type === "tool_call" ? event.input : event.type === "message" ? event.text : null;
      const shown = event.type === "tool_result" ? event.output : fields;
      if (textsIn(shown).some((text) => holds(text, words))) return true;
    }
    return false;
  }

  return (event, quote) => {
    const words = essence(quote);
    if (words.trim().length < 4) return false;
    if (event.type === "http") {
      const said = event.id !== null && isAnswer(event) && event.body !== undefined && holds(event.body, words);
      return said && !isOwnWord(words, event.seq);
    }
    if (event.type !== "tool_result" || !actingTools.includes(event.tool) || !hasWorked(event)) return false;
    if (isOwnWord(words, event.seq)) return false;
    const shown = textsIn([event.output?.stdout, event.output?.stderr, event.output?.body, event.output?.text]);
    if (!shown.some((text) => holds(text, words))) return false;
    if (answersOf(event).some((text) => holds(text, words))) return true;
    const command = calls.get(event.id)?.input?.command;
    const isLocal = product === null && event.tool === "run_command" && typeof command === "string";
    const written = [...calls.values()]
      .filter(({ seq, tool }) => seq < event.seq && tool === "write_file")
      .map(({ input }) => String(input?.path ?? ""));
    return isLocal && asksForeignProgram(command, written);
  };
}
