import http from "node:http";
import https from "node:https";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { GuardError, toGuardError } from "../../net/failure.ts";
import { type CheckedAddress, openRequest } from "../../net/http-request.ts";
import { resolve } from "../../net/resolve.ts";
import { keepText } from "./answer-text.ts";
import { begin, connectMs, count, type Passage, permit, statusOf, type Way } from "./connection.ts";

const plainText = { "content-type": "text/plain; charset=utf-8", connection: "close" };

/** In which a browser, that can ask a proxy for no https address but by a tunnel, says that it means one. */
export const schemeHeader = "evald-scheme";

/** With which the proxy's own answers say that they are, and what failed. */
export const failureHeader = "evald-failure";

/** Of one connection alone, and so not for the other side. */
const ofOneConnection =
  `${schemeHeader} ${failureHeader} connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade expect host`.split(
    " ",
  );
/** A connection for each request: a kept one was checked for another. */
const agents = { "http:": new http.Agent(), "https:": new https.Agent() };

/** Forwards a request with an absolute URL, after urlMap, and relays the response. */
export async function forward(
  passage: Passage,
  request: http.IncomingMessage,
  response: http.ServerResponse,
  callId: string | null,
): Promise<void> {
  const url = /^https?:\/\//i.test(request.url ?? "") ? URL.parse(request.url ?? "") : null;
  if (!url) {
    response.writeHead(400, plainText).end("This is the evald proxy. Send an absolute http or https URL.\n");
    return;
  }
  url.hash = url.username = url.password = "";
  if (request.headers[schemeHeader] === "https") url.protocol = "https:";
  const way = begin(passage, request.method ?? "GET", url, callId);
  response.on("close", () => {
    if (!response.writableFinished) way.stop(new GuardError("aborted", url.href, "The client disconnected"));
  });
  await way.go(async () => {
    const real = passage.mapping.toReal(url);
    way.told.mappedUrl = real?.href ?? null;
    if (!real) permit(passage, url);
    const target = real ?? url;
    const addresses = await resolve(target, passage.places, passage.lookup, way.signal);
    await relay(passage, way, { request, response, url, target, addresses });
  });
  if (!way.failure) return;
  if (response.headersSent) response.destroy();
  else
    response
      .writeHead(statusOf(way.failure), { ...plainText, [failureHeader]: way.failure.kind })
      .end(`evald: ${way.failure.message}\n`);
}

type Relay = {
  request: http.IncomingMessage;
  response: http.ServerResponse;
  url: URL;
  target: URL;
  addresses: CheckedAddress[];
};

async function relay(passage: Passage, way: Way, { request, response, url, target, addresses }: Relay): Promise<void> {
  way.signal.throwIfAborted();
  const upstream = openRequest({
    url: target,
    method: request.method ?? "GET",
    headers: toSent(request.headers, passage.token),
    addresses,
    agent: agents[target.protocol as keyof typeof agents],
    connectMs,
  });
  const counter = (what: "bytesIn" | "bytesOut") =>
    new Transform({
      transform(chunk, _encoding, done) {
        try {
          if (what === "bytesOut") way.told.bytesOut += chunk.length;
          count(passage, what, chunk.length, url);
          if (what === "bytesIn") way.told.bytes += chunk.length;
          done(null, chunk);
        } catch (error) {
          way.stop(error as GuardError);
        }
      },
    });
  const answer = Promise.withResolvers<http.IncomingMessage>();
  upstream.once("response", answer.resolve);
  upstream.on("error", answer.reject);
  const stop = () => {
    upstream.destroy(way.signal.reason);
    answer.reject(way.signal.reason);
  };
  way.signal.addEventListener("abort", stop);
  try {
    const { "content-length": length, "transfer-encoding": chunked } = request.headers;
    if (Number(length) > 0 || chunked) pipeline(request, counter("bytesOut"), upstream).catch(answer.reject);
    else upstream.end();
    const incoming = await answer.promise;
    // First of all: the client's side breaks off in turn, and would be blamed.
    incoming.on("error", (error) => way.stop(toGuardError(error, url, true)));
    way.told.status = incoming.statusCode ?? null;
    way.told.contentType = incoming.headers["content-type"] ?? null;
    const headers = toKept(incoming.headers);
    if (headers.location && target !== url && URL.canParse(String(headers.location), target.href))
      headers.location = passage.mapping.toCaller(new URL(String(headers.location), target), url).href;
    response.writeHead(incoming.statusCode ?? 502, headers);
    const kept = passage.isProduct(url.hostname) ? keepText(incoming.headers) : null;
    const read = counter("bytesIn");
    if (kept) read.on("data", kept.take);
    await pipeline(incoming, read, response, { signal: way.signal });
    way.told.body = kept?.text();
    // Bun takes a body without a length for whole when it is its own request that was destroyed.
    way.signal.throwIfAborted();
  } finally {
    way.signal.removeEventListener("abort", stop);
    upstream.destroy();
  }
}

/** Headers to forward, without any that contain the token. */
function toSent(headers: http.IncomingHttpHeaders, token: string): Record<string, string> {
  const sent = Object.entries(toKept(headers)).map(([name, value]) => [name, String(value)] as const);
  const encoded = (text: string) =>
    text.split(/\s+/).some((word) => Buffer.from(word, "base64").toString("latin1").includes(token));
  return Object.fromEntries(sent.filter(([, value]) => !value.includes(token) && !encoded(value)));
}

function toKept(headers: http.IncomingHttpHeaders): http.OutgoingHttpHeaders {
  const named = (headers.connection ?? "").toLowerCase().split(/\s*,\s*/);
  const dropped = new Set([...ofOneConnection, ...named]);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !dropped.has(name)));
}
