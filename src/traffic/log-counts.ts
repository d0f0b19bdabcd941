import { createGunzip, type Gunzip } from "node:zlib";
import { type CountedKind, countedKinds } from "../db/tables/traffic.ts";
import { pageKey } from "../net/page-key.ts";
import { formatOf, type LineReader, type LogFormat, type LoggedRequest, lineReaderOf } from "./log-formats.ts";
import { createVisitorLookup, type VisitorKind } from "./visitors.ts";

/**
 * Requests of one kind of visitor for one page in one month. `markdown`: how many of `reads` got Markdown. `missing`: requests that were answered by
 * 404 or 410.
 */
type PageCounts = {
  month: string;
  kind: CountedKind;
  name: string;
  url: string;
  reads: number;
  markdown: number;
  missing: number;
};

/**
 * The counts of a log. `unread`: lines that are no request; `samples` has the first of them. `requests`: by kind of visitor, including the kinds that
 * aren't counted.
 */
export type LogCounts = {
  lines: number;
  unread: number;
  samples: string[];
  requests: Partial<Record<VisitorKind, number>>;
  /** Requests for pages that were left out, because the log has too many different pages. */
  leftOut: number;
  pages: PageCounts[];
};

/** Maximum pages of a result. The most requested pages are kept. */
const maxPages = 20_000;
/** Maximum pages in memory. Beyond this, pages that were requested once are forgotten, because scanners request each address once. */
const maxPagesInMemory = 4 * maxPages;
const maxLineChars = 64 * 1024;
/** Bytes that are split into lines at once. Larger pieces take more memory and are not faster. */
const pieceBytes = 32 * 1024;
const maxSamples = 3;
const maxSampleChars = 100;

const assets = /\.(?:m?js|css|png|jpe?g|svg|gif|ico|woff2?|map|webp|avif|mp4|webm|ttf|otf|eot|webmanifest)$/i;
const scriptsAndArchives = /\.(?:php\d?|aspx?|jsp|cgi|env|sql|bak|ini|pem|key|ya?ml\.bak|tar|t?gz|zip|rar)$/i;
/** Names that begin with a dot, such as `.git`. `.well-known` is none of them, nor is any other name with a w after the dot. */
const hiddenFiles = /\/\.[^w/][^/]*(?:\/.*)?$/i;
const otherSoftware =
  /\/(?:wp-[^/]*|wordpress|xmlrpc|phpmyadmin|cgi-bin|vendor|actuator|boaform|solr|owa|ecp|hnap1|server-status|_ignition)(?:\/.*)?$/i;
/** Paths that scanners look for in every site and that were never a page of any docs. */
const scannerPaths = [scriptsAndArchives, hiddenFiles, otherSoftware];
/** Visitors whose missing pages count, because they may guess URLs. Crawlers only follow links, and a link may be out of date. */
const guessers: ReadonlySet<CountedKind> = new Set(["coding", "answer", "program"]);
function isMarkdown(path: string, { contentType, accept }: LoggedRequest): boolean {
  if (/\.mdx?$/i.test(path)) return true;
  return contentType === "" ? accept.includes("text/markdown") : contentType.includes("markdown");
}

/**
 * Counts the requests of a log for the pages of docs. `docsUrl`: the address of the docs. The paths of all pages begin with its path. Feed the
 * counter text, then call `end`.
 */
function createLogCounter(docsUrl: string, format: LogFormat | null) {
  const { origin, pathname } = new URL(docsUrl);
  const base = pathname.replace(/[^/]*$/, "");
  const visitorOf = createVisitorLookup();
  let read: LineReader | null = format === null ? null : lineReaderOf(format);
  /** The beginning of a line whose end has not been read yet. */
  let rest = "";
  let pages = new Map<string, PageCounts>();
  const urlOf = createUrlLookup(origin);
  const counts: Omit<LogCounts, "pages"> = { lines: 0, unread: 0, samples: [], requests: {}, leftOut: 0 };

  function countLine(line: string): void {
    if (line === "") return;
    if (line.length > maxLineChars) countUnread(counts, line);
    else {
      read ??= lineReaderOf(formatOf(line));
      const request = read(line);
      if (request === null) countUnread(counts, line);
      else if (request !== "comment") countRequest(request);
    }
  }

  function countRequest(request: LoggedRequest): void {
    const { method, status, month } = request;
    const { kind, name } = visitorOf(request.userAgent, request.accept);
    counts.lines++;
    counts.requests[kind] = (counts.requests[kind] ?? 0) + 1;
    const countedKind = countedKinds.find((each) => each === kind);
    if (!countedKind || (method !== "GET" && method !== "HEAD")) return;
    const isMissing = status === 404 || status === 410;
    const isRead = (status >= 200 && status < 300) || status === 304;
    if (!isMissing && !isRead) return;
    const [path = ""] = request.path.split(/[?#]/, 1);
    if (!path.startsWith(base) || assets.test(path)) return;
    const isScan = scannerPaths.some((pattern) => pattern.test(path));
    // Of the missing pages, only those count that a visitor may have guessed, rather than followed a link to or scanned for.
    if (isMissing && (!guessers.has(countedKind) || isScan)) return;
    const url = urlOf(path);
    const key = `${month} ${name} ${url}`;
    let page = pages.get(key);
    if (!page) {
      if (pages.size >= maxPagesInMemory) forgetRarePages();
      // The month is a part of its line, which would stay in memory.
      page = { month: copyOf(month), kind: countedKind, name, url, reads: 0, markdown: 0, missing: 0 };
      pages.set(key, page);
    }
    if (isMissing) page.missing++;
    else {
      page.reads++;
      if (isMarkdown(path, request)) page.markdown++;
    }
  }

  function forgetRarePages(): void {
    const sorted = [...pages].sort(([, a], [, b]) => timesOf(b) - timesOf(a));
    for (const [, page] of sorted.slice(maxPages)) counts.leftOut += timesOf(page);
    pages = new Map(sorted.slice(0, maxPages));
  }

  return {
    /** Adds the next text of the log. It may end within a line. */
    add(text: string): void {
      const lines = (rest + text).split("\n");
      // If a line is too long, only so much of it is kept that it still counts as too long.
      rest = (lines.pop() ?? "").slice(0, maxLineChars + 1);
      for (const line of lines) countLine(line.endsWith("\r") ? line.slice(0, -1) : line);
    },
    end(): LogCounts {
      countLine(rest);
      const sorted = [...pages.values()].sort((a, b) => timesOf(b) - timesOf(a) || (a.url < b.url ? -1 : 1));
      for (const page of sorted.slice(maxPages)) counts.leftOut += timesOf(page);
      return { ...counts, pages: sorted.slice(0, maxPages) };
    },
  };
}

function countUnread(counts: { lines: number; unread: number; samples: string[] }, line: string): void {
  counts.lines++;
  counts.unread++;
  if (counts.samples.length < maxSamples) counts.samples.push(line.slice(0, maxSampleChars));
}

/** Returns a function that finds the URL of a path. `/a`, `/a/` and `/a.md` have the same URL. Its results are remembered. */
function createUrlLookup(origin: string): (path: string) => string {
  const urls = new Map<string, string>();
  return (path) => {
    let url = urls.get(path);
    if (url === undefined) {
      if (urls.size >= maxPages) urls.clear();
      url = copyOf(pageKey(origin + path));
      urls.set(copyOf(path), url);
    }
    return url;
  };
}

/** A copy of a text. A part of a larger text would keep all of that text in memory. */
const copyOf = (text: string): string => Buffer.from(text).toString();

const timesOf = ({ reads, missing }: PageCounts): number => reads + missing;

/** Recognizes gzip by the first two bytes (RFC 1952). */
const isGzip = (bytes: Uint8Array) => bytes[0] === 0x1f && bytes[1] === 0x8b;

/** The bytes of a log, unpacked if it is compressed by gzip. Throws what reading and unpacking throw. */
async function* unpackedLog(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const pieces = bytes[Symbol.asyncIterator]();
  const first = await pieces.next();
  if (first.done) return;
  const allPieces = piecesFrom(first.value, pieces);
  if (!isGzip(first.value)) return yield* allPieces;
  const gunzip = createGunzip();
  const writing = writeTo(gunzip, allPieces);
  yield* gunzip;
  await writing;
}

/** All pieces of a log. The first piece has already been read, because it tells the format. */
async function* piecesFrom(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  yield* { [Symbol.asyncIterator]: () => rest };
}

/** Writes pieces as fast as they are unpacked. If reading them fails, the reader of `gunzip` gets the error. */
async function writeTo(gunzip: Gunzip, pieces: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const piece of pieces)
      if (!gunzip.write(piece)) await new Promise((drained) => gunzip.once("drain", drained));
    gunzip.end();
  } catch (error) {
    gunzip.destroy(error as Error);
  }
}

/** Counts a log that is read piece by piece. */
export async function countLog(
  bytes: AsyncIterable<Uint8Array>,
  docsUrl: string,
  format: LogFormat | null,
): Promise<LogCounts> {
  const counter = createLogCounter(docsUrl, format);
  const decoder = new TextDecoder();
  for await (const piece of unpackedLog(bytes))
    for (let from = 0; from < piece.length; from += pieceBytes)
      counter.add(decoder.decode(piece.subarray(from, from + pieceBytes), { stream: true }));
  return counter.end();
}
