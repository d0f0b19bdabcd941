import http from "node:http";
import https from "node:https";
import { type Client, endToEndHeaders, forwardToOwnServer, framingHeaders, refuse, serveProxy } from "./proxy.ts";

/** Forwards requests to a unix socket to a URL of the operator, and the responses back. */
export const forwardSocket = (socketPath: string, baseUrl: string): Promise<{ close(): Promise<void> }> =>
  serveProxy(socketPath, {
    onRequest: (client) =>
      void forwardToOwnServer(client, requestTo(baseUrl, client), {
        onFailure: (error) => answerFailure(client, error),
      }),
    onTunnel: (_, socket) => refuse({ socket }, 405, "The gateway opens no tunnels."),
  });

function requestTo(baseUrl: string, client: Client): http.ClientRequest {
  const { method = "GET", headers, url = "/" } = client.request;
  const target = new URL(baseUrl + url);
  return (target.protocol === "https:" ? https : http).request(target, {
    method,
    headers: { ...endToEndHeaders(headers), ...framingHeaders(client) },
    // On an idle connection that was just closed, the request would fail, and a request for a model must not be sent twice.
    agent: false,
  });
}

/** Answers in the format of the gateway's own errors. */
function answerFailure(client: Client, error: Error): void {
  const message = `the gateway did not respond: ${error.message}`;
  const body = JSON.stringify({ type: "error", error: { type: "gateway", message } });
  refuse(client, 502, body, { "content-type": "application/json" });
}

/** The body at a path of the gateway, with a run's token. Throws for any status other than 200. */
export async function fetchFile(baseUrl: string, path: string, token: string): Promise<Uint8Array> {
  const answer = await fetch(baseUrl + path, { headers: { authorization: `Bearer ${token}` }, redirect: "manual" });
  if (answer.status !== 200) throw new Error(`the service answered ${answer.status} to ${path}`);
  return await answer.bytes();
}
