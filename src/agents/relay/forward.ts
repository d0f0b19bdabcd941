import http from "node:http";
import { type Client, endToEndHeaders, forwardToOwnServer, framingHeaders, refuse } from "../../net/proxy.ts";
import { sourceHeader, toSourceHeader } from "../egress/headers.ts";
import type { Source } from "../reader.ts";

/** Where a request goes. `credentials`: the credentials of the run, with the ID of the tool call that made the request. */
export type Destination = { url: string; credentials: string | undefined };

type ForwardOptions = {
  egressPath: string;
  /** How the agent found a URL. */
  sourceOf: (url: string) => Source;
  /** The headers to send to a URL. */
  fill: (headers: http.IncomingHttpHeaders, url: URL) => http.IncomingHttpHeaders;
  /** Called with each response before its body is read. */
  onResponse: (method: string, url: string, response: http.IncomingMessage) => void;
};

/** Sends a request with its absolute URL to the egress proxy, and sends the response back. `destination` null: the request has no URL. */
export function forwardToEgress(destination: Destination | null, client: Client, options: ForwardOptions): void {
  if (!destination) refuse(client, 400, "This is the evald proxy. Send an absolute http or https URL.");
  else
    forwardToOwnServer(client, openEgressRequest(destination, client, options), {
      onResponse: (response) => options.onResponse(client.request.method ?? "GET", destination.url, response),
      onFailure: () => refuse(client, 502, "evald: the proxy of this run has closed"),
    });
}

function openEgressRequest(
  { url, credentials }: Destination,
  client: Client,
  { egressPath, sourceOf, fill }: ForwardOptions,
): http.ClientRequest {
  return http.request({
    socketPath: egressPath,
    method: client.request.method ?? "GET",
    path: url,
    agent: false,
    maxHeaderSize: 64 * 1024,
    headers: {
      ...endToEndHeaders(fill(client.request.headers, new URL(url))),
      ...framingHeaders(client),
      host: new URL(url).host,
      [sourceHeader]: toSourceHeader(sourceOf(url)),
      ...(credentials !== undefined && { "proxy-authorization": credentials }),
    },
  });
}
