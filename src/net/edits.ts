import { type Static, Type } from "@sinclair/typebox";
import { invalidField } from "../errors.ts";
import { httpUrl } from "../schema.ts";

/** All edits of a run together, in UTF-8. */
const maxEditsBytes = 256 * 1024;

const EditUrl = Type.String({ maxLength: 2_000 });

const Replacement = Type.Object({
  url: EditUrl,
  find: Type.String({ minLength: 1, maxLength: 20_000 }),
  replacement: Type.String({ maxLength: 100_000 }),
});
type Replacement = Static<typeof Replacement>;

/**
 * What a run changes on the way to its agent, by the URLs of the live docs. `hidden`: URLs, exact or ending in "*" for a prefix, that answer 404.
 * `replacements`: exact text that is replaced in the source of a page (HTML, Markdown, any text), wherever it occurs; `url` as in `hidden`.
 */
export const Edits = Type.Object(
  {
    hidden: Type.Array(EditUrl, { maxItems: 200, description: "Answer 404" }),
    replacements: Type.Array(Replacement, { maxItems: 100 }),
  },
  {
    title: "Edits",
    description: "URLs are exact, or end in *. Hidden ones may have a #section",
    examples: [{ hidden: ["https://a.example/*"], replacements: [] }],
  },
);
export type Edits = Static<typeof Edits>;

/**
 * What an edit did to the response to a request. The digests are the SHA-256, in hex, of the body without content encoding: as the site sent it and
 * as the agent got it. The first is null if the site was not asked or sent no page.
 */
export type PageEdit = {
  kind: "hidden" | "replaced";
  originalDigest: string | null;
  editedDigest: string;
  /** The positions in `replacements` of the replacements whose text occurred. */
  replacements?: number[];
};

/** The URLs that an edit is about: one page, or all URLs that begin like this. */
type UrlPattern = { text: string; host: string; isPrefix: boolean; hasQuery: boolean };

/** Edits that are ready to be applied. `hosts`: the hosts, with port, of edited pages. */
export type CompiledEdits = {
  hidden: UrlPattern[];
  replacements: (Replacement & { pattern: UrlPattern })[];
  hosts: Set<string>;
};

/** SHA-256 of a body, in hex. */
export const digestOf = (body: Uint8Array): string => new Bun.CryptoHasher("sha256").update(body).digest("hex");

/**
 * Returns the edits of a run, with hidden sections turned into replacements; null: none. Throws bad_request, which names the first edit that can't be
 * applied.
 */
export function parseEdits(edits: Edits | undefined): Edits | null {
  const { hidden, replacements } = edits ?? { hidden: [], replacements: [] };
  if (hidden.length === 0 && replacements.length === 0) return null;
  checkCount("edits.hidden", hidden, Edits.properties.hidden);
  checkCount("edits.replacements", replacements, Edits.properties.replacements);
  for (const [i, url] of hidden.entries()) checkPattern(`edits.hidden.${i}`, url);
  const hiddenPatterns = hidden.map(toPattern);
  for (const [i, replacement] of replacements.entries())
    checkReplacement(`edits.replacements.${i}`, replacement, hiddenPatterns);
  const repeated = findRepeated(replacements);
  if (repeated >= 0) throw invalidField(`edits.replacements.${repeated}.find`, "is already replaced at this URL");
  const bytes = Buffer.byteLength(JSON.stringify({ hidden, replacements }));
  if (bytes > maxEditsBytes) throw invalidField("edits", `must have at most ${maxEditsBytes} bytes, not ${bytes}`);
  return { hidden: [...new Set(hidden)], replacements };
}

function checkCount(field: string, items: unknown[], { maxItems = 0 }: { maxItems?: number }): void {
  if (items.length > maxItems) throw invalidField(field, `must have at most ${maxItems} entries`);
}

function checkReplacement(field: string, { url, find, replacement }: Replacement, hidden: UrlPattern[]): void {
  checkPattern(`${field}.url`, url);
  const pattern = toPattern(url);
  if (hidden.some((each) => covers(each, pattern))) throw invalidField(`${field}.url`, "is a page that is hidden");
  checkText(`${field}.find`, find, Replacement.properties.find);
  checkText(`${field}.replacement`, replacement, Replacement.properties.replacement);
  if (find === "") throw invalidField(`${field}.find`, "must not be empty");
  if (find === replacement) throw invalidField(`${field}.replacement`, "must differ from find");
}

function checkText(field: string, text: string, { maxLength = 0 }: { maxLength?: number }): void {
  if (text.length > maxLength) throw invalidField(field, `must have at most ${maxLength} characters`);
}

function checkPattern(field: string, pattern: string): void {
  checkText(field, pattern, EditUrl);
  const url = httpUrl(pattern.replace(/\*$/, ""));
  if (url === null)
    throw invalidField(field, "must be an absolute http or https URL, which may end in * for all that begin like it");
  if (url.username || url.password) throw invalidField(field, "must not contain a user name or password");
  if (pattern.includes("#")) throw invalidField(field, "must not have a fragment, which is not sent to the site");
}

/** The position of the first replacement with the same page and text as an earlier one; -1: there is none. */
function findRepeated(replacements: Replacement[]): number {
  const keys = replacements.map(({ url, find }) => `${toPattern(url).text} ${url.endsWith("*")} ${find}`);
  return keys.findIndex((key, i) => keys.indexOf(key) < i);
}

/** Compiles edits that `parseEdits` has accepted. */
function compileEdits({ hidden, replacements }: Edits): CompiledEdits {
  const patterns = hidden.map(toPattern);
  const compiled = replacements.map((each) => ({ ...each, pattern: toPattern(each.url) }));
  const hosts = new Set([...patterns, ...compiled.map(({ pattern }) => pattern)].map(({ host }) => host));
  return { hidden: patterns, replacements: compiled, hosts };
}

/** The edits of a task, compiled; null if it has none. */
export const editsOf = ({ edits }: { edits?: Edits | undefined }): CompiledEdits | null =>
  edits ? compileEdits(edits) : null;

function toPattern(text: string): UrlPattern {
  const isPrefix = text.endsWith("*");
  const url = new URL(isPrefix ? text.slice(0, -1) : text);
  return { text: textOf(url), host: hostOf(url), isPrefix, hasQuery: url.search !== "" };
}

/** The host without the dot that can end a complete name. */
export const hostOf = ({ host }: URL): string => host.replace(/\.(?=:|$)/, "");

/** A URL in one spelling, without scheme and fragment, because a page is the same over http and https. */
const textOf = (url: URL): string =>
  hostOf(url) + toOneSpelling(url.pathname.replace(/\/{2,}/g, "/")) + toOneSpelling(url.search);

/** Decodes what needs no percent-encoding. */
const toOneSpelling = (text: string): string =>
  text.replace(/%[0-9a-f]{2}/gi, (code) => {
    const char = String.fromCharCode(Number.parseInt(code.slice(1), 16));
    return /[\w.~-]/.test(char) ? char : code.toUpperCase();
  });

/** A page is the same with any query, unless the pattern has one. */
export function matchesUrl({ text, host, isPrefix, hasQuery }: UrlPattern, url: URL): boolean {
  if (hostOf(url) !== host) return false;
  const urlText = textOf(url);
  if (isPrefix) return urlText.startsWith(text);
  return urlText === text || (!hasQuery && urlText.startsWith(`${text}?`));
}

const covers = (outer: UrlPattern, inner: UrlPattern): boolean =>
  outer.isPrefix ? inner.text.startsWith(outer.text) : !inner.isPrefix && inner.text === outer.text;

/** Whether a page is hidden. */
export const isHidden = ({ hidden }: CompiledEdits, url: URL): boolean => hidden.some((each) => matchesUrl(each, url));

/** The replacements in a page, with their positions. */
export const replacementsOf = ({ replacements }: CompiledEdits, url: URL) =>
  replacements.flatMap(({ pattern, ...replacement }, position) =>
    matchesUrl(pattern, url) ? [{ ...replacement, position }] : [],
  );

/** The fields of a session's event that say which URLs were fetched. */
type FetchEvent = {
  type: string;
  url?: string | null | undefined;
  /** The URL that redirects led to. */
  answeredBy?: string | undefined;
  method?: string | undefined;
  status?: number | null | undefined;
  phase?: string | undefined;
};

/**
 * The URLs that the agent of a session fetched, including those after redirects, each with the status of the last response. They come from the
 * records of the proxy and of evald's own clients, never from what an agent says. What the survey of the docs fetched afterwards does not count.
 */
export const listFetchedUrls = (events: readonly FetchEvent[]): { url: string; status: number }[] =>
  events.flatMap(({ type, url, answeredBy, method, status, phase }) => {
    const isFetch = type === "http" && method !== "CONNECT" && phase !== "survey";
    if (!isFetch || url == null || status == null) return [];
    const urls = answeredBy === undefined ? [url] : [url, answeredBy];
    return urls.map((each) => ({ url: each, status }));
  });

/** Whether the agent of a session fetched a URL that matches the pattern: an exact URL or, with "*" at the end, a prefix, as in `Edits`. */
export function meetsUrl(events: readonly FetchEvent[], pattern: string): boolean {
  const compiled = toPattern(pattern);
  return listFetchedUrls(events).some(({ url }) => URL.canParse(url) && matchesUrl(compiled, new URL(url)));
}
