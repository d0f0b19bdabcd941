import { mkdtempSync } from "node:fs";
import type http from "node:http";
import { join } from "node:path";
import { createMapping } from "../../net/mapping.ts";
import { serveProxy } from "../../net/proxy.ts";
import type { AgentEvent } from "../agent.ts";
import { type CheckSecrets, fillHeaders, hostUrlsOfSecrets } from "../check-secrets.ts";
import type { Reader } from "../reader.ts";
import type { BrowserProxy } from "../sandbox/chromium.ts";
import type { SandboxProxy } from "../sandbox/sandbox.ts";
import type { Task } from "../task.ts";
import { createAuthority } from "./authority.ts";
import { writeCertificates } from "./certificates.ts";
import { forwardToEgress } from "./forward.ts";
import { createPageWatch } from "./page-watch.ts";
import { runHostsOf } from "./run-hosts.ts";
import { destinationOf, openTunnel, type Tunnels } from "./tunnels.ts";

/** Data of the run for its relay. */
export type RelayRun = {
  task: Task;
  /** ID of the tool call in progress, if one sandbox runs for many calls; null: unknown. */
  findCurrentCallId?: () => string | null | Promise<string | null>;
  /** What the agent has read. Docs pages that programs fetch are added to it, and the URLs that they request are looked up in it. */
  reader: Reader;
  /** Called with an event for each docs page that a program read. */
  report: (event: AgentEvent) => void;
  now: () => number;
  /** Secrets that the relay fills into the headers of requests to their hosts, so that programs don't get them. Default: none. */
  secrets?: CheckSecrets;
};

type RelayOptions = RelayRun & {
  /** A folder that only the run uses. The relay writes its socket and the certificates to it. The owner of the folder removes it. */
  folder: string;
  /** The run's session at the egress proxy. */
  egress: { path: string; token: string };
};

/** The HTTP proxy of a run's sandboxes. */
export type Relay = {
  /**
   * Everything that a sandbox needs for its network access, as its `sockets.egress`: the proxy, the certificates that programs must trust, host
   * names that resolve, and ports that lead to the run's hosts. `callId`: the ID of the tool call that the sandbox runs for; the requests made
   * inside are recorded under it.
   */
  toProxy(callId?: string): SandboxProxy;
  /** The same for a browser. */
  toBrowserProxy(): BrowserProxy;
  /** Disconnects every program. */
  [Symbol.asyncDispose](): Promise<void>;
};

/**
 * Starts the HTTP proxy between the sandboxes of one run and the egress proxy. It decrypts connections to the run's own hosts, with a certificate
 * authority that exists only in this process and is trusted only in these sandboxes. It forwards each request with its absolute URL, so that the
 * egress proxy can map and record it. Tunnels to other hosts are passed to the egress proxy unopened. It may refuse them.
 */
export async function openRelay(options: RelayOptions): Promise<Relay> {
  const { folder, egress, task, reader, report, now, findCurrentCallId = () => null, secrets = {} } = options;
  const relayFolder = mkdtempSync(join(folder, "relay-"));
  const socketPath = join(relayFolder, "socket");
  const authority = createAuthority(now);
  const certificates = await writeCertificates(relayFolder, authority.certificate);
  const hosts = runHostsOf(task, hostUrlsOfSecrets(secrets));
  const mapping = createMapping(task.urlMap);
  const forwardOptions = {
    egressPath: egress.path,
    sourceOf: reader.sourceOf,
    // If the urlMap replaces a host, the secrets of that host must not be sent to the replacement.
    fill: (headers: http.IncomingHttpHeaders, url: URL) =>
      mapping.toMappedUrl(url) === null ? fillHeaders(headers, url.host, secrets) : headers,
    onResponse: createPageWatch(task, reader, report),
  };
  const tunnels: Tunnels = {
    egressPath: egress.path,
    authority,
    hosts,
    accept: (socket) => server.accept(socket),
    tunnelByConnection: new WeakMap(),
    credentialsByConnection: new WeakMap(),
    sockets: new Set(),
  };
  const toDestination = async (request: http.IncomingMessage) => {
    const destination = destinationOf(tunnels, request);
    const id = await findCurrentCallId();
    if (destination === null || id === null) return destination;
    return { ...destination, credentials: `Basic ${Buffer.from(`${id}:${egress.token}`).toString("base64")}` };
  };
  const server = await serveProxy(socketPath, {
    onRequest: async (client) => forwardToEgress(await toDestination(client.request), client, forwardOptions),
    onTunnel: (request, socket, head) => openTunnel(tunnels, request, socket, head),
  });

  return {
    toProxy: (callId) => ({
      path: socketPath,
      token: egress.token,
      user: callId,
      certificates,
      hosts: hosts.names,
      routes: hosts.routes,
    }),
    toBrowserProxy: () => ({ path: socketPath, token: egress.token, trustedKey: authority.keyDigest }),
    async [Symbol.asyncDispose]() {
      for (const socket of tunnels.sockets) socket.destroy();
      await server.close();
    },
  };
}
