import http from "node:http";
import https from "node:https";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { mayEdit, sendEdited } from "../../net/edited-answer.ts";
import { type CompiledEdits, isHidden } from "../../net/edits.ts";
import { toGuardError } from "../../net/failure.ts";
import { type CheckedAddress, openRequest } from "../../net/http-request.ts";
import { type Client, endToEndHeaders, forward, framingHeaders, refuse } from "../../net/proxy.ts";
import { resolve } from "../../net/resolve.ts";
import { type Agents, failureHeader, failureMessageHeader } from "../../net/tunnel-agents.ts";
import { connectMs, type EgressPolicy, type Exchange, requirePermission, runExchange } from "./exchange.ts";
import { schemeHeader, sourceHeader, toSource } from "./headers.ts";
import { createRequestSample } from "./request-text.ts";
import { createTextSample } from "./response-text.ts";
import { createMessageReader } from "./websocket-text.ts";

/** Each request gets a new connection, because a kept-alive connection was authorized for another request. */
const httpAgents = { "http:": new http.Agent(), "https:": new https.Agent() };

/** Larger pages are not edited: the request fails. */
const maxEditableBytes = 16 * 1024 * 1024;

/** Forwards a request with an absolute URL, after the urlMap, and its response. The request may ask to change the protocol, such as to a WebSocket. */
export async function forwardRequest(policy: EgressPolicy, client: Client, callId: string | null): Promise<void> {
  const { headers, url: address = "", method = "GET" } = client.request;
  const url = /^https?:\/\//i.test(address) ? URL.parse(address) : null;
  if (!url) return refuse(client, 400, "This is the evald proxy. Send an absolute http or https URL.");
  url.hash = url.username = url.password = "";
  if (headers[schemeHeader] === "https") url.protocol = "https:";
  const source = toSource(headers[sourceHeader]);
  await runExchange(policy, { method, url, callId, source, client }, async (exchange) => {
    const mappedUrl = policy.mapping.toMappedUrl(url);
    exchange.mappedUrl = policy.mapping.toMappedUrlWithoutTokens(url)?.href ?? null;
    if (!mappedUrl) requirePermission(policy, url);
    const target = mappedUrl ?? url;
    const socketPath = policy.siteSocketOf(target);
    const addresses =
      socketPath === null ? await resolve(target, policy.addressPolicy, policy.lookup, exchange.signal) : null;
    exchange.signal.throwIfAborted();
    const agent = httpAgents[target.protocol as keyof typeof httpAgents];
    const isProduct = policy.isProduct(url.hostname);
    const sent = { ...toRequestHeaders(headers, policy.token), ...framingHeaders(client) };
    // Compressed messages couldn't be read.
    if (isProduct) delete sent["sec-websocket-extensions"];
    const { edits } = policy;
    // A client that can't get a response asks for another protocol. It gets no page that could be edited.
    if (edits && mayEdit(edits, method, url) && ("response" in client || isHidden(edits, url)))
      return forwardEdited(policy, exchange, { edits, client, target, headers: sent, addresses, socketPath });
    const upstream = openRequest({ url: target, method, headers: sent, addresses, socketPath, agent, connectMs });
    const samples = createSamples(sent);
    await forward(client, upstream, {
      signal: exchange.signal,
      onResponse(response) {
        // This listener must come first. Otherwise the client's side, which fails as a consequence, would be reported as the cause.
        response.on("error", (error) => exchange.stop(toGuardError(error, url, true)));
        if (isProduct) samples.response.start(response.headers);
        return recordResponse(policy, exchange, response, target);
      },
      onChunk(chunk, direction) {
        exchange.onChunk(chunk, direction);
        if (isUpgraded(exchange)) samples.messages[direction].add(chunk);
        else if (direction === "in") samples.response.add(chunk);
        else samples.request.add(chunk);
      },
    });
    if (isProduct) recordTexts(exchange, samples);
  });
}

type EditedForward = {
  edits: CompiledEdits;
  client: Client;
  target: URL;
  headers: Record<string, string>;
  addresses: CheckedAddress[] | null;
  socketPath: string | null;
};

/** Answers a request whose response the run edits, once the whole response has arrived. A request for another protocol to a hidden URL is refused. */
async function forwardEdited(
  policy: EgressPolicy,
  exchange: Exchange,
  { edits, client, target, headers: sent, ...connection }: EditedForward,
): Promise<void> {
  const { url, signal } = exchange;
  const { method = "GET" } = client.request;
  // The body of the request is not sent.
  const headers: Record<string, string> = { ...sent, "accept-encoding": "gzip, br" };
  for (const name of ["content-length", "transfer-encoding"]) delete headers[name];
  const answer = await sendEdited(edits, url, policy.mapping, {
    ...connection,
    url: target,
    method: "response" in client ? method : "UPGRADE",
    headers,
    agent: httpAgents[target.protocol as keyof Agents],
    freshAgents: httpAgents,
    maxBytes: maxEditableBytes,
    connectMs,
    signal,
    wantsBody: () => true,
  });
  exchange.edit = answer.edit ?? null;
  const response = { statusCode: answer.status, headers: toNodeHeaders(answer.headers) };
  const responseHeaders = recordResponse(policy, exchange, response, target);
  exchange.onChunk(Buffer.from(answer.body), "in");
  signal.throwIfAborted();
  if (!("response" in client)) return refuse(client, answer.status, "Not found");
  if (policy.isProduct(url.hostname)) {
    const samples = createSamples(sent);
    samples.response.start(responseHeaders as http.IncomingHttpHeaders);
    samples.response.add(Buffer.from(answer.body));
    recordTexts(exchange, samples);
  }
  client.request.resume();
  client.response.writeHead(answer.status, responseHeaders);
  await pipeline(Readable.from(answer.body.length > 0 ? [answer.body] : []), client.response, { signal });
}

const toNodeHeaders = (headers: Headers): http.IncomingHttpHeaders => {
  const cookies = headers.getSetCookie();
  return { ...Object.fromEntries(headers), ...(cookies.length > 0 && { "set-cookie": cookies }) };
};

/** Collects what is sent to a product and what comes back: a request and its response, then the messages of a WebSocket. */
const createSamples = (sent: Record<string, string>) => ({
  request: createRequestSample(sent),
  response: createTextSample(),
  messages: { in: createMessageReader(), out: createMessageReader() },
});

const isUpgraded = ({ status }: Exchange): boolean => status === 101;

/** Notes what was sent and what came back, if it is text. */
function recordTexts(exchange: Exchange, { request, response, messages }: ReturnType<typeof createSamples>): void {
  const body = isUpgraded(exchange) ? messages.in.text() : response.text();
  if (body !== undefined && !request.isRepeatedIn(body)) exchange.body = body;
  const sent = request.text();
  if (!isUpgraded(exchange)) exchange.sent = sent;
  else if (sent !== undefined && messages.out.isComplete()) exchange.sent = sent + messages.out.text();
}

/** The headers to send, without any that contain the token. */
function toRequestHeaders(headers: http.IncomingHttpHeaders, token: string): Record<string, string> {
  const encodesToken = (text: string) =>
    text.split(/\s+/).some((word) => Buffer.from(word, "base64").toString("latin1").includes(token));
  return Object.fromEntries(
    Object.entries(withoutOwnHeaders(headers))
      .map(([name, value]) => [name, String(value)] as const)
      .filter(([, value]) => !value.includes(token) && !encodesToken(value)),
  );
}

/** Notes the response in the exchange, and returns the headers for the client. */
function recordResponse(
  { mapping }: EgressPolicy,
  exchange: Exchange,
  response: { statusCode?: number; headers: http.IncomingHttpHeaders },
  target: URL,
): http.OutgoingHttpHeaders {
  exchange.status = response.statusCode ?? null;
  exchange.contentType = response.headers["content-type"] ?? null;
  const headers = withoutOwnHeaders(response.headers);
  const location = target === exchange.url ? null : URL.parse(String(headers.location ?? ""), target.href);
  if (headers.location && location) headers.location = mapping.toCallerUrl(location, exchange.url).href;
  return headers;
}

function withoutOwnHeaders(headers: http.IncomingHttpHeaders): http.OutgoingHttpHeaders {
  const remaining = endToEndHeaders(headers);
  for (const name of [schemeHeader, sourceHeader, failureHeader, failureMessageHeader]) delete remaining[name];
  return remaining;
}
