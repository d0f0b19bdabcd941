import http from "node:http";
import https from "node:https";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { GuardError, toGuardError } from "../../net/failure.ts";
import { type CheckedAddress, openRequest } from "../../net/http-request.ts";
import { resolve } from "../../net/resolve.ts";
import { failureHeader } from "../../net/tunnels.ts";
import { keepText } from "./answer-text.ts";
import { connectMs, count, type Passage, type ProxiedRequest, permit, startRequest, statusOf } from "./connection.ts";
import { ofOneMessage, schemeHeader, sourceHeader, toSource } from "./headers.ts";

const plainText = { "content-type": "text/plain; charset=utf-8", connection: "close" };

/** A new connection for each request, because a kept-alive connection was authorized for another one. */
export const freshAgents = { "http:": new http.Agent(), "https:": new https.Agent() };

/** Forwards a request with an absolute URL, after the urlMap, and relays the response. */
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
  const proxied = startRequest(passage, request.method ?? "GET", url, {
    callId,
    source: toSource(request.headers[sourceHeader]),
  });
  response.on("close", () => {
    if (!response.writableFinished) proxied.stop(new GuardError("aborted", url.href, "The client disconnected"));
  });
  await proxied.run(async () => {
    const real = passage.mapping.toReal(url);
    proxied.record.mappedUrl = passage.mapping.toShown(url)?.href ?? null;
    if (!real) permit(passage, url);
    const target = real ?? url;
    const addresses = await resolve(target, passage.places, passage.lookup, proxied.signal);
    await relay(passage, proxied, { request, response, url, target, addresses });
  });
  if (!proxied.failure) return;
  if (response.headersSent) response.destroy();
  else
    response
      .writeHead(statusOf(proxied.failure), { ...plainText, [failureHeader]: proxied.failure.kind })
      .end(`evald: ${proxied.failure.message}\n`);
}

type Relay = {
  request: http.IncomingMessage;
  response: http.ServerResponse;
  url: URL;
  target: URL;
  addresses: CheckedAddress[];
};

async function relay(
  passage: Passage,
  proxied: ProxiedRequest,
  { request, response, url, target, addresses }: Relay,
): Promise<void> {
  proxied.signal.throwIfAborted();
  const upstream = openRequest({
    url: target,
    method: request.method ?? "GET",
    headers: toSent(request.headers, passage.token),
    addresses,
    agent: freshAgents[target.protocol as keyof typeof freshAgents],
    connectMs,
  });
  const counter = (what: "bytesIn" | "bytesOut") =>
    new Transform({
      transform(chunk, _encoding, done) {
        try {
          if (what === "bytesOut") proxied.record.bytesOut += chunk.length;
          count(passage, what, chunk.length, url);
          if (what === "bytesIn") proxied.record.bytes += chunk.length;
          done(null, chunk);
        } catch (error) {
          proxied.stop(error as GuardError);
        }
      },
    });
  const answer = Promise.withResolvers<http.IncomingMessage>();
  upstream.once("response", answer.resolve);
  upstream.on("error", answer.reject);
  const stop = () => {
    upstream.destroy(proxied.signal.reason);
    answer.reject(proxied.signal.reason);
  };
  proxied.signal.addEventListener("abort", stop);
  try {
    const { "content-length": length, "transfer-encoding": chunked } = request.headers;
    if (Number(length) > 0 || chunked) pipeline(request, counter("bytesOut"), upstream).catch(answer.reject);
    else upstream.end();
    const incoming = await answer.promise;
    // Must come first: the client's side fails as a consequence, and would be reported as the cause.
    incoming.on("error", (error) => proxied.stop(toGuardError(error, url, true)));
    proxied.record.status = incoming.statusCode ?? null;
    proxied.record.contentType = incoming.headers["content-type"] ?? null;
    const headers = toKept(incoming.headers);
    if (headers.location && target !== url && URL.canParse(String(headers.location), target.href))
      headers.location = passage.mapping.toCaller(new URL(String(headers.location), target), url).href;
    response.writeHead(incoming.statusCode ?? 502, headers);
    const kept = passage.isProduct(url.hostname) ? keepText(incoming.headers) : null;
    const read = counter("bytesIn");
    if (kept) read.on("data", kept.take);
    await pipeline(incoming, read, response, { signal: proxied.signal });
    proxied.record.body = kept?.text();
    // When Bun's own request is destroyed, it treats a body without a length as complete.
    proxied.signal.throwIfAborted();
  } finally {
    proxied.signal.removeEventListener("abort", stop);
    upstream.destroy();
  }
}

/** Headers to forward, without any that contain the token. */
export function toSent(headers: http.IncomingHttpHeaders, token: string): Record<string, string> {
  const sent = Object.entries(toKept(headers)).map(([name, value]) => [name, String(value)] as const);
  const encoded = (text: string) =>
    text.split(/\s+/).some((word) => Buffer.from(word, "base64").toString("latin1").includes(token));
  return Object.fromEntries(sent.filter(([, value]) => !value.includes(token) && !encoded(value)));
}

function toKept(headers: http.IncomingHttpHeaders): http.OutgoingHttpHeaders {
  const {
    [schemeHeader]: _scheme,
    [failureHeader]: _failure,
    [sourceHeader]: _source,
    ...kept
  } = ofOneMessage(headers);
  return kept;
}
