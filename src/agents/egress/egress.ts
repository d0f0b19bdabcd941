import { promises as dns } from "node:dns";
import { chmodSync } from "node:fs";
import http from "node:http";
import type net from "node:net";
import type { AllowRule } from "../../config.ts";
import { createPlaces } from "../../net/addresses.ts";
import { createHostList } from "../../net/hosts.ts";
import { createMapping } from "../../net/mapping.ts";
import type { Lookup } from "../../net/resolve.ts";
import { createSlots } from "../../net/slots.ts";
import type { AgentEvent } from "../agent.ts";
import { forward } from "./forward.ts";
import type { EgressLimits, Passage } from "./passage.ts";
import { rawAnswer, tunnel } from "./tunnel.ts";

export type EgressRun = {
  /** Product and further addresses: their very hosts may be reached. */
  addresses: string[];
  /** Start addresses of the docs: their hosts, and every host below these. */
  docsAddresses: string[];
  urlMap: Record<string, string>;
  /** Private places that the operator opened; an address that is not public is reached in no other way. */
  allowPrivate: readonly AllowRule[];
  limits?: Partial<EgressLimits>;
  /** What its requests are for. Default: `way`. */
  purpose?: "way" | "page";
  /** Hears of every request when it is over, and of every limit when it is reached. */
  onEvent(event: AgentEvent): void;
};

export type EgressSession = {
  /** The password of the proxy's basic authentication (any user name), or its bearer token. */
  token: string;
  /** Cuts what is still going on; the token is worth nothing any more. */
  close(): void;
};

export type Egress = {
  socketPath: string;
  open(run: EgressRun): EgressSession;
  close(): Promise<void>;
};

type Options = {
  /** Of the unix socket, in a folder that only the service can enter. */
  socketPath: string;
  operatorHosts: readonly string[];
  now: () => number;
  /** All addresses of a host name. Default: the system's name service. */
  lookup?: Lookup;
};

const defaultLimits: EgressLimits = {
  requests: 2000,
  bytesOut: 50 * 1024 ** 2,
  bytesIn: 1024 ** 3,
  concurrent: 64,
  requestMs: 300_000,
};

/**
 * The only way out of a sandbox: an HTTP proxy on a unix socket that asks for a run's token. It lets a run reach its own hosts, at addresses
 * that the guard's rules allow, follows the urlMap for addresses in absolute form, and tells of every request. A tunnel (CONNECT) is not broken
 * open: only its host is seen.
 */
export async function startEgress({ socketPath, operatorHosts, now, lookup }: Options): Promise<Egress> {
  const passages = new Map<string, Passage>();
  // A connection that said whose it is need not say it again.
  const known = new WeakMap<object, Passage>();

  function passageOf(request: http.IncomingMessage): Passage | null {
    const [, scheme = "", value = ""] = /^(\S+)\s+(\S+)$/.exec(request.headers["proxy-authorization"] ?? "") ?? [];
    const token = /^basic$/i.test(scheme)
      ? Buffer.from(value, "base64")
          .toString()
          .replace(/^[^:]*:/, "")
      : value;
    const passage = passages.get(token) ?? known.get(request.socket);
    if (!passage || passage.ended.signal.aborted) return null;
    known.set(request.socket, passage);
    return passage;
  }

  const unknown = "The proxy of evald needs the token of a run that is going on.";
  const challenge = 'Basic realm="evald"';
  const server = http.createServer({ maxHeaderSize: 64 * 1024 }, (request, response) => {
    const passage = passageOf(request);
    if (passage) return void forward(passage, request, response);
    response.writeHead(407, { "proxy-authenticate": challenge, "content-type": "text/plain" }).end(`${unknown}\n`);
  });
  server.on("connect", (request: http.IncomingMessage, socket: net.Socket, head: Buffer) => {
    const passage = passageOf(request);
    if (passage) return void tunnel(passage, request, socket, head);
    socket.end(rawAnswer(407, unknown, `Proxy-Authenticate: ${challenge}\r\n`));
  });
  server.requestTimeout = 0;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen(socketPath, resolve);
  await promise;
  chmodSync(socketPath, 0o600);

  return {
    socketPath,
    open(run) {
      const token = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
      const limits = { ...defaultLimits, ...run.limits };
      const ended = new AbortController();
      passages.set(token, {
        token,
        limits,
        hosts: createHostList({ ...run, operatorHosts }),
        mapping: createMapping(run.urlMap),
        places: createPlaces(run.allowPrivate),
        slots: createSlots(limits.concurrent),
        lookup: lookup ?? ((hostname) => dns.lookup(hostname, { all: true })),
        now,
        ended,
        purpose: run.purpose ?? "way",
        onEvent: run.onEvent,
        used: { requests: 0, bytesOut: 0, bytesIn: 0 },
      });
      return {
        token,
        close() {
          passages.delete(token);
          ended.abort();
        },
      };
    },
    async close() {
      for (const { ended } of passages.values()) ended.abort();
      server.closeAllConnections();
      await new Promise<void>((done) => server.close(() => done()));
    },
  };
}
