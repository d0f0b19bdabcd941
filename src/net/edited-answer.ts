import { isUtf8 } from "node:buffer";
import { decodeText } from "./charset.ts";
import { type CompiledEdits, digestOf, hostOf, isHidden, type PageEdit, replacementsOf } from "./edits.ts";
import { GuardError } from "./failure.ts";
import { isListing, withoutHiddenEntries } from "./hidden-entries.ts";
import { type Answer, type RequestOptions, sendRequest } from "./http-request.ts";
import type { Mapping } from "./mapping.ts";

/** A response as the agent gets it. `edit`: what was edited; absent: it is what the site sent. */
export type EditedAnswer = Answer & { edit?: PageEdit };

/** Maximum size of an edited page. If replacements make it larger, it fails like a page that is itself too large. */
const maxEditedBytes = 16 * 1024 * 1024;

/** Maximum number of replacements in one page. A text that occurs more often, such as a single letter, is a mistake. */
const maxOccurrences = 50_000;

const notFound = Buffer.from("Not found\n");

/** Headers that describe the body as the site sent it, or that let a client ask for a part of it. */
const bodyHeaders = [
  "accept-ranges",
  "content-digest",
  "content-encoding",
  "content-length",
  "content-md5",
  "content-range",
  "digest",
  "etag",
  "last-modified",
  "repr-digest",
  "transfer-encoding",
];

/** Request headers that ask for a part of a body, or for none if it has not changed. */
const partHeaders = ["if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "range"];

/** The headers of a request whose whole response is needed. */
const forWholeBody = (headers: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !partHeaders.includes(name.toLowerCase())));

/** Whether the response to a request may have to be edited. Only then is its whole body read first. */
export function mayEdit(edits: CompiledEdits, method: string, url: URL): boolean {
  if (isHidden(edits, url)) return true;
  if (method !== "GET" && method !== "HEAD") return false;
  const hidesEntries = edits.hidden.some(({ host }) => host === hostOf(url)) && isListing(url);
  return hidesEntries || replacementsOf(edits, url).length > 0;
}

/**
 * Sends a request whose response may be edited, and edits the response. `url`: the URL before the urlMap. The site is asked for the whole page, even
 * for HEAD and for a part. A hidden page is requested too, to know what was hidden. It answers 404 even if the site does not respond. Throws
 * GuardError.
 */
export async function sendEdited(
  edits: CompiledEdits,
  url: URL,
  mapping: Mapping,
  request: RequestOptions,
): Promise<EditedAnswer> {
  const { method } = request;
  const isRead = method === "GET" || method === "HEAD";
  const getPage = () => sendRequest({ ...request, method: "GET", headers: forWholeBody(request.headers) });
  const answer = isHidden(edits, url)
    ? toHiddenAnswer(isRead ? await getPage().catch(toNoAnswer) : null)
    : editAnswer(edits, url, await getPage(), mapping);
  // The body is decoded by now, whether or not it was edited.
  const headers = new Headers(answer.headers);
  for (const name of ["content-encoding", "transfer-encoding"]) headers.delete(name);
  headers.set("content-length", `${answer.body.length}`);
  return { ...answer, headers, body: method === "HEAD" ? new Uint8Array() : answer.body };
}

/** Returns null if the site failed to answer. Throws any other error, for example if our own rules refused the request or if it was aborted. */
function toNoAnswer(error: unknown): null {
  if (error instanceof GuardError && error.kind !== "refused" && error.kind !== "aborted") return null;
  throw error;
}

/** The answer for a hidden page. `answer`: what the site sent for it; null: it was not asked, or has not answered. */
function toHiddenAnswer(answer: Answer | null): EditedAnswer {
  const hasPage = answer !== null && isSuccess(answer.status);
  return {
    status: 404,
    headers: new Headers({ "content-type": "text/plain; charset=utf-8" }),
    body: notFound,
    edit: {
      kind: "hidden",
      originalDigest: hasPage ? digestOf(answer.body) : null,
      editedDigest: digestOf(notFound),
    },
  };
}

/**
 * Replaces texts in a page, and removes the entries of hidden pages from a listing. Only text in a response with a success status is edited, and it
 * becomes UTF-8. At each place of a text, the first matching replacement applies. The text that it inserts is not searched again. Throws GuardError
 * if the page becomes too large.
 */
function editAnswer(edits: CompiledEdits, url: URL, answer: Answer, mapping: Mapping): EditedAnswer {
  const { status, headers, body } = answer;
  const contentType = headers.get("content-type");
  if (!isSuccess(status) || !isText(body, contentType)) return answer;
  const original = decodeText(body, contentType);
  const { text, positions } = replaceTexts(edits, url, original);
  const isHiddenUrl = (listedUrl: string) => isHidden(edits, mapping.toCallerUrl(new URL(listedUrl), url));
  const edited = isListing(url) && edits.hidden.length > 0 ? withoutHiddenEntries(text, url, isHiddenUrl) : text;
  if (edited === original) return answer;
  const editedBody = Buffer.from(edited);
  const editedHeaders = new Headers(headers);
  for (const name of bodyHeaders) editedHeaders.delete(name);
  editedHeaders.set("content-type", toUtf8Type(contentType));
  const digests = { originalDigest: digestOf(body), editedDigest: digestOf(editedBody) };
  return {
    status,
    headers: editedHeaders,
    body: editedBody,
    edit: { kind: "replaced", ...digests, ...(positions.length > 0 && { replacements: positions }) },
  };
}

/** Whether a response has its own body, and all of it. */
const isSuccess = (status: number): boolean => status >= 200 && status <= 299 && status !== 204 && status !== 206;

const textType = /^\s*(text\/|image\/svg)/i;
const textApplication = /^\s*application\/([\w.-]+\+)?(json|xml|javascript|ecmascript|yaml|x-yaml|toml)\b/i;

/** Whether a body is text: its type says so, or its type is vague or missing and the body can be read as text. */
function isText(body: Uint8Array, contentType: string | null): boolean {
  const type = contentType ?? "";
  return textType.test(type) || textApplication.test(type) || (isUtf8(body) && !body.includes(0));
}

const toUtf8Type = (contentType: string | null): string =>
  `${(contentType ?? "text/plain").replace(/;\s*charset\s*=\s*("[^"]*"|[^\s;]*)/i, "").trim()}; charset=utf-8`;

/** A text that is searched for. `at`: where it occurs next; -1: nowhere. `position`: the position of its replacement in the edits. */
type Search = { find: Buffer; replacement: Buffer; position: number; at: number };

/** The search whose text occurs first from `start` on; null: none does. */
function findNext(searches: Search[], source: Buffer, start: number): Search | null {
  for (const search of searches) {
    const isCovered = search.at >= 0 && search.at < start;
    if (isCovered) search.at = source.indexOf(search.find, start);
  }
  const remaining = searches.filter(({ at }) => at >= 0);
  return remaining.reduce<Search | null>((first, each) => (first && first.at <= each.at ? first : each), null);
}

/** `positions`: the positions of the replacements that were found. The time is linear in the length of the text, whatever the text contains. */
function replaceTexts(edits: CompiledEdits, url: URL, text: string): { text: string; positions: number[] } {
  const source = Buffer.from(text);
  const searches = replacementsOf(edits, url).map(({ find, replacement, position }): Search => {
    const bytes = Buffer.from(find);
    return { find: bytes, replacement: Buffer.from(replacement), position, at: source.indexOf(bytes) };
  });
  const parts: Buffer[] = [];
  const positions = new Set<number>();
  // `end`: where the last replaced text ends. `size`: the size of the edited text so far.
  let end = 0;
  let size = 0;
  for (let next = findNext(searches, source, end); next !== null; next = findNext(searches, source, end)) {
    positions.add(next.position);
    parts.push(source.subarray(end, next.at), next.replacement);
    size += next.at - end + next.replacement.length;
    if (size > maxEditedBytes)
      throw new GuardError("protocol", url.href, `The edits make ${url.href} larger than ${maxEditedBytes} bytes`);
    if (parts.length > 2 * maxOccurrences)
      throw new GuardError("protocol", url.href, `The edits apply more than ${maxOccurrences} times in ${url.href}`);
    end = next.at + next.find.length;
  }
  if (positions.size === 0) return { text, positions: [] };
  parts.push(source.subarray(end));
  return { text: Buffer.concat(parts).toString(), positions: [...positions].sort((a, b) => a - b) };
}
