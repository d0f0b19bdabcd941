import type { SyntaxNode } from "@lezer/common";
import { type HttpCall, queryOf, toUrl } from "./http-call.ts";
import { Fields, type Literal, parseJson, unknownPart, unresolved } from "./literals.ts";
import { argumentsOf, type Program, type ProgramLanguage, parseProgram } from "./programs.ts";

/** The names of arguments of a client's function, in an object of options or in a call, by what the arguments mean. */
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
/** HTTP clients of JavaScript and Python that send exactly what the call says. Other clients may add headers or parameters. */
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

/** The request of a call such as `fetch(url, options)`, `axios(url)`, `axios({ url, … })`, `client.get(url, options)` or `requests.request("GET", url)`. */
function callOf(program: Program, node: SyntaxNode): HttpCall[] {
  const callee = program.code.slice(node.from, node.firstChild?.to ?? node.from);
  const { positional, named } = argumentsOf(program, node);
  const [, client = "", name = ""] = /^(?:(.*)\.)?(\w+)$/s.exec(callee) ?? [];
  const isFetch = name === "fetch" && /^(?:|window|globalThis|self)$/.test(client);
  const isMethod = methodName.test(name);
  const isRequest = name === "request" && plainClient.test(client);
  const [first] = positional;
  if (program.language === "python") {
    if (!isRequest && !isMethod) return [];
    const [method, address = named.get("url")] = isRequest ? positional : [name, first];
    return toCalls(program, node, { method, address, options: named, isPlain: plainClient.test(client) });
  }
  // axios(url, options)
  const isClient = plainClient.test(callee);
  if (!isFetch && !isMethod && !isRequest && !isClient) return [];
  if ((isClient || isRequest) && first instanceof Fields)
    return toCalls(program, node, { address: first.get("url"), options: first, isPlain: true });
  const [address, ...others] = positional;
  // axios.post(url, data, options)
  const hasData = client === "axios" && /^(?:post|put|patch)$/.test(name);
  const options = (hasData ? others[1] : others[0]) ?? new Fields();
  const isPlain =
    (isFetch || isClient || plainClient.test(client)) && !/\bdefaults\b|\binterceptors\b/.test(program.code);
  return toCalls(program, node, {
    address,
    options,
    isPlain,
    ...(isMethod && { method: name }),
    ...(hasData && { data: others[0] }),
  });
}

type CallArguments = {
  method?: Literal;
  address: Literal | undefined;
  options: Literal;
  data?: Literal;
  /** Whether the client adds nothing to what the call says. */
  isPlain: boolean;
};

function toCalls({ language, code }: Program, node: SyntaxNode, call: CallArguments): HttpCall[] {
  const url = typeof call.address === "string" ? toUrl(call.address) : null;
  if (url === null) return [];
  const names = language === "script" ? scriptOptions : pythonOptions;
  const options = call.options instanceof Fields ? call.options : null;
  const isKnown = options !== null && !options.isOpen;
  const method = call.method ?? options?.get("method") ?? (isKnown ? "GET" : unresolved);
  if (typeof method !== "string" || method.includes(unknownPart)) return [];
  const optionOf = (keys: string[]) => keys.map((key) => options?.get(key)).find((value) => value !== undefined);
  const saysAll = call.isPlain && isKnown;
  const headers = saysAll ? keysOf(optionOf(["headers"])) : null;
  const queryOption = saysAll ? keysOf(optionOf(names.query)) : null;
  const queryInUrl = queryOf(url);
  const body = optionOf(names.body) ?? call.data ?? optionOf(names.text);
  return [
    {
      method: method.toUpperCase(),
      url,
      query: queryInUrl && queryOption && queryInUrl.union(new Set(queryOption)),
      headers: headers && new Set(headers.map((name) => name.toLowerCase())),
      hasCredentials: optionOf(names.credentials) !== undefined,
      body: body === undefined && !saysAll ? unresolved : parseBody(body),
      line: code.slice(0, node.from).split("\n").length - 1,
    },
  ];
}

/** The names of all fields of an object; empty without an object; null: unknown. */
function keysOf(value: Literal | undefined): string[] | null {
  if (value === undefined) return [];
  return value instanceof Fields && !value.isOpen ? [...value.keys()] : null;
}

/** The value of a body that is JSON text; any other text is unresolved. */
function parseBody(body: Literal | undefined): Literal | undefined {
  if (typeof body !== "string") return body;
  return /^\s*[{[]/.test(body) ? parseJson(body) : unresolved;
}
