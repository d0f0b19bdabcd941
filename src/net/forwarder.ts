import http from "node:http";
import https from "node:https";
import { reasonOf } from "../errors.ts";
import { type Client, endToEndHeaders, forwardToOwnServer, framingHeaders, refuse, serveProxy } from "./proxy.ts";

/** Serves a unix socket. Its requests are forwarded to a URL of the operator, and the responses are sent back. */
export const forwardSocket = (socketPath: string, baseUrl: string): Promise<{ close(): Promise<void> }> =>
  serveProxy(socketPath, {
    onRequest: (client) =>
      void forwardToOwnServer(client, requestTo(baseUrl, client), {
        onFailure: (error) => answerFailure(client, error),
      }),
    onTunnel: (_, socket) => refuse({ socket }, 405, "The gateway opens no tunnels."),
  });

/**
 * Serves a unix socket of one client, and forwards its requests to another unix socket. Requests that `isAllowed` rejects are refused with status
 * 401.
 */
export const serveOwnSocket = (
  socketPath: string,
  to: string,
  isAllowed: (headers: Headers) => boolean,
): Promise<{ close(): Promise<void> }> =>
  serveProxy(socketPath, {
    onRequest(client) {
      const { method = "GET", headers, url = "/" } = client.request;
      if (!isAllowed(new Headers(headers as Record<string, string>)))
        return refuse(client, 401, toErrorBody("unauthorized", "the token is not of this run"), jsonType);
      const upstream = http.request({
        socketPath: to,
        method,
        path: url,
        headers: { ...endToEndHeaders(headers), ...framingHeaders(client) },
        agent: false,
      });
      void forwardToOwnServer(client, upstream, { onFailure: (error) => answerFailure(client, error) });
    },
    onTunnel: (_, socket) => refuse({ socket }, 405, "The gateway opens no tunnels."),
  });

const jsonType = { "content-type": "application/json" };

/** An error in the format of the gateway's own. */
const toErrorBody = (type: string, message: string): string =>
  JSON.stringify({ type: "error", error: { type, message } });

function requestTo(baseUrl: string, client: Client): http.ClientRequest {
  const { method = "GET", headers, url = "/" } = client.request;
  const target = new URL(baseUrl + url);
  return (target.protocol === "https:" ? https : http).request(target, {
    method,
    headers: { ...endToEndHeaders(headers), ...framingHeaders(client) },
    // A new connection: on an idle one that was just closed, the request would fail, and a request to a model must not be sent twice.
    agent: false,
  });
}

const answerFailure = (client: Client, error: Error): void =>
  refuse(client, 502, toErrorBody("gateway", `the gateway did not respond: ${error.message}`), jsonType);

/** The body at a path of the gateway, with a run's token. Throws for any status other than 200. */
export async function fetchFile(baseUrl: string, path: string, token: string): Promise<Uint8Array> {
  const answer = await fetch(baseUrl + path, { headers: { authorization: `Bearer ${token}` }, redirect: "manual" });
  if (answer.status !== 200) throw new Error(`the service answered ${answer.status} to ${path}`);
  return await answer.bytes();
}

const checkMs = 5_000;

/** Why requests don't reach the gateway at a URL; null: they do. The gateway is recognized by how it refuses a request without a token. */
export async function findGatewayProblem(baseUrl: string): Promise<string | null> {
  const { host } = new URL(baseUrl);
  try {
    const signal = AbortSignal.timeout(checkMs);
    const answer = await fetch(`${baseUrl}/`, { redirect: "manual", signal });
    const text = await answer.text();
    if (answer.status === 401 && isRefusal(text)) return null;
    return `the gateway at ${host} can't be reached: something else answers there, with status ${answer.status}; check EVALD_GATEWAY_URL`;
  } catch (error) {
    return `the gateway at ${host} can't be reached: ${reasonOf(error)}`;
  }
}

function isRefusal(text: string): boolean {
  try {
    return JSON.parse(text)?.error?.type === "unauthorized";
  } catch {
    return false;
  }
}
