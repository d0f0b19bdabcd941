import type http from "node:http";

/**
 * Set by the browser for a request that was https. The proxy can only see an https URL through a tunnel, so the browser
 * sends it as http.
 */
export const schemeHeader = "evald-scheme";

/** Marks responses that the proxy itself generated, with the kind of failure. */
export const failureHeader = "evald-failure";

/** Hop-by-hop headers, which must not be forwarded. */
const ofOneConnection =
  "connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade expect host".split(
    " ",
  );

/** The headers of a message without hop-by-hop headers. */
export function ofOneMessage(headers: http.IncomingHttpHeaders): http.OutgoingHttpHeaders {
  const named = (headers.connection ?? "").toLowerCase().split(/\s*,\s*/);
  const dropped = new Set([...ofOneConnection, ...named]);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !dropped.has(name)));
}
