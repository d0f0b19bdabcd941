import type { SyntaxNode } from "@lezer/common";
import { type HttpCall, queryOf, toUrl } from "./http-call.ts";
import { Fields, type Literal, parseJson, unknownPart, unresolved } from "./literals.ts";
import { argumentsOf, type Program, type ProgramLanguage, parseProgram } from "./programs.ts";

/** What an argument of a client's function means, by its name in an object of options or in a call. */
type OptionNames = { body: string[]; text: string[]; query: string[]; credentials: string[] };

const scriptOptions: OptionNames = {
  body: ["json"],
  text: ["body", "data"],
  query: ["params", "searchParams", "query"],
  credentials: ["auth", "credentials", "withCredentials", "agent"],
};
const pythonOptions: OptionNames = {
  body: ["json"],
  text: ["data", "content", "files"],
  query: ["params"],
  credentials: ["auth", "cookies", "cert"],
};
const methodName = /^(?:get|post|put|patch|delete|head|options)$/;
/** Clients whose functions send what the call says; those of any other object may add to it. */
const plainClient = /^(?:axios|ky|got|requests|httpx)$/;

/** The requests that a program sends with fetch, or with a client that has a function for each method. */
export function callsOfProgram(language: ProgramLanguage, code: string): HttpCall[] {
  const program = parseProgram(language, code);
  const calls: HttpCall[] = [];
  program.tree.iterate({
    enter({ name, node }) {
      if (name === "CallExpression") calls.push(...callOf(program, node));
    },
  });
  return calls;
}

function callOf(program: Program, node: SyntaxNode): HttpCall[] {
  const callee = program.code.slice(node.from, node.firstChild?.to ?? node.from);
  const { positional, named } = argumentsOf(program, node);
  const [, client = "", name = ""] = /^(?:(.*)\.)?(\w+)$/s.exec(callee) ?? [];
  const isFetch = name === "fetch" && /^(?:|window|globalThis|self)$/.test(client);
  const isRequest = name === "request" && plainClient.test(client);
  const isConfig = plainClient.test(callee) || (isRequest && program.language === "script");
  if (!isFetch && !isRequest && !isConfig && !methodName.test(name)) return [];
  if (isConfig && positional[0] instanceof Fields)
    return toCalls(program, node, { address: positional[0].get("url"), options: positional[0], isPlain: true });
  if (program.language === "python") {
    const method = isRequest ? positional[0] : name;
    const address = positional[isRequest ? 1 : 0] ?? named.get("url");
    return toCalls(program, node, { method, address, options: named, isPlain: plainClient.test(client) });
  }
  const [address, ...others] = positional;
  const hasData = client === "axios" && /^(?:post|put|patch)$/.test(name);
  const options = (hasData ? others[1] : others[0]) ?? new Fields();
  const isPlain = (isFetch || plainClient.test(client)) && !/\bdefaults\b|\binterceptors\b/.test(program.code);
  return toCalls(program, node, {
    address,
    options,
    isPlain,
    ...(!isFetch && { method: name }),
    ...(hasData && { data: others[0] }),
  });
}

type CallArguments = {
  method?: Literal;
  address: Literal | undefined;
  options: Literal;
  data?: Literal;
  isPlain: boolean;
};

function toCalls({ language, code }: Program, node: SyntaxNode, parts: CallArguments): HttpCall[] {
  const url = typeof parts.address === "string" ? toUrl(parts.address) : null;
  if (url === null) return [];
  const names = language === "script" ? scriptOptions : pythonOptions;
  const options = parts.options instanceof Fields ? parts.options : null;
  const isKnown = options !== null && !options.isOpen;
  const method = parts.method ?? options?.get("method") ?? (isKnown ? "GET" : unresolved);
  if (typeof method !== "string" || method.includes(unknownPart)) return [];
  const first = (keys: string[]) => keys.map((key) => options?.get(key)).find((value) => value !== undefined);
  const isPlain = parts.isPlain && isKnown;
  const headers = first(["headers"]) ?? new Fields();
  const extra = first(names.query) ?? new Fields();
  const queryInUrl = queryOf(url);
  const body = first(names.body) ?? parts.data ?? first(names.text);
  return [
    {
      method: method.toUpperCase(),
      url,
      query:
        isPlain && queryInUrl && extra instanceof Fields && !extra.isOpen
          ? queryInUrl.union(new Set(extra.keys()))
          : null,
      headers:
        isPlain && headers instanceof Fields && !headers.isOpen
          ? new Set([...headers.keys()].map((name) => name.toLowerCase()))
          : null,
      hasCredentials: first(names.credentials) !== undefined,
      body: !isPlain && body === undefined ? unresolved : typeof body === "string" ? textBody(body) : body,
      line: code.slice(0, node.from).split("\n").length - 1,
    },
  ];
}

const textBody = (text: string): Literal => (/^\s*[{[]/.test(text) ? parseJson(text) : unresolved);
