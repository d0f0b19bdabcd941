import { promises as dns } from "node:dns";
import { chmodSync } from "node:fs";
import http from "node:http";
import type net from "node:net";
import type { AllowRule } from "../../config/allow-rules.ts";
import { createPlaces } from "../../net/addresses.ts";
import { createHostList, everyHost } from "../../net/hosts.ts";
import { createMapping } from "../../net/mapping.ts";
import type { Lookup } from "../../net/resolve.ts";
import { createSlots } from "../../net/slots.ts";
import type { AgentEvent } from "../agent.ts";
import type { EgressLimits, Passage } from "./connection.ts";
import { forward } from "./forward.ts";
import { rawAnswer } from "./raw-answer.ts";
import { tunnel } from "./tunnel.ts";
import { upgrade } from "./upgrade.ts";

export type EgressRun = {
  /** Allows every host, at addresses that the guard's rules allow. */
  anyHost?: true;
  /** Product URL and start URLs: exactly these hosts are allowed. */
  addresses: string[];
  /** Docs URLs: their hosts and all subdomains are allowed. */
  docsAddresses: string[];
  /** URLs of MCP servers, whose hosts `addresses` contains. */
  mcpUrls?: string[];
  urlMap: Record<string, string>;
  /** Private addresses that the operator allowed. All others are blocked. */
  allowPrivate: readonly AllowRule[];
  limits?: Partial<EgressLimits>;
  /** Purpose of its requests. Default: `task`. */
  purpose?: "task" | "page";
  /** Called for every finished request and every limit that is reached. */
  onEvent(event: AgentEvent): void;
};

export type EgressSession = {
  /** The password for basic authentication at the proxy (with any user name), or its bearer token. */
  token: string;
  /** Aborts open requests and revokes the token. */
  close(): void;
};

export type Egress = {
  socketPath: string;
  open(run: EgressRun): EgressSession;
  close(): Promise<void>;
};

type Options = {
  /** Path of the unix socket, in a folder that only the service can access. */
  socketPath: string;
  operatorHosts: readonly string[];
  now: () => number;
  /** Resolves a host name. Default: the system's resolver. */
  lookup?: Lookup;
};

type Entry = { passage: Passage; callId: string | null };

/** The user name of clients outside a tool call. */
const anyUser = "run";

/** Hosts of the run, except package registries: any of them may be the product. */
function productHosts({ addresses, docsAddresses }: EgressRun): (hostname: string) => boolean {
  const hosts = [...addresses, ...docsAddresses].flatMap((address) => URL.parse(address)?.hostname ?? []);
  return (hostname) => hosts.some((host) => hostname === host || hostname.endsWith(`.${host}`));
}

/** The URLs of MCP servers, with those below them and those where their clients look for a way to sign in. */
function mcpServersOf({ mcpUrls = [] }: EgressRun): (url: URL) => boolean {
  const servers = mcpUrls.flatMap((address) => URL.parse(address) ?? []);
  return ({ origin, pathname }) =>
    servers.some(
      (server) =>
        server.origin === origin &&
        (pathname === server.pathname ||
          pathname.startsWith(`${server.pathname.replace(/\/$/, "")}/`) ||
          /^\/\.well-known\/(oauth|openid)-/.test(pathname)),
    );
}

const defaultLimits: EgressLimits = {
  requests: 2000,
  bytesOut: 50 * 1024 ** 2,
  bytesIn: 1024 ** 3,
  concurrent: 64,
  requestMs: 300_000,
};

/**
 * The only network access of a sandbox: an HTTP proxy on a unix socket that requires a run's token. It allows the run's
 * own hosts, or every host, at addresses that the guard's rules allow, applies the urlMap to absolute URLs, and reports every request.
 * Tunnels (CONNECT) are not decrypted: only the host is visible.
 */
export async function startEgress({ socketPath, operatorHosts, now, lookup }: Options): Promise<Egress> {
  const passages = new Map<string, Passage>();
  // A connection that has authenticated doesn't need to do so again.
  const known = new WeakMap<object, Entry>();

  function entryOf(request: http.IncomingMessage): Entry | null {
    const [, scheme = "", value = ""] = /^(\S+)\s+(\S+)$/.exec(request.headers["proxy-authorization"] ?? "") ?? [];
    // The bridge sends the ID of the tool call as the user name. Programs in the sandbox never see these credentials.
    const [, user = "", password = value] = /^basic$/i.test(scheme)
      ? (/^(.*):([^:]*)$/s.exec(Buffer.from(value, "base64").toString()) ?? [])
      : [];
    const passage = passages.get(password);
    const entry = passage
      ? { passage, callId: user === "" || user === anyUser ? null : user }
      : known.get(request.socket);
    if (!entry || entry.passage.ended.signal.aborted) return null;
    known.set(request.socket, entry);
    return entry;
  }

  const unknown = "The evald proxy requires the token of a run in progress.";
  const challenge = 'Basic realm="evald"';
  const server = http.createServer({ maxHeaderSize: 64 * 1024 }, (request, response) => {
    const entry = entryOf(request);
    if (entry) return void forward(entry.passage, request, response, entry.callId);
    response.writeHead(407, { "proxy-authenticate": challenge, "content-type": "text/plain" }).end(`${unknown}\n`);
  });
  server.on("connect", (request: http.IncomingMessage, socket: net.Socket, head: Buffer) => {
    const entry = entryOf(request);
    if (entry) return void tunnel(entry.passage, request, socket, head, entry.callId);
    socket.end(rawAnswer(407, unknown, `Proxy-Authenticate: ${challenge}\r\n`));
  });
  server.on("upgrade", (request: http.IncomingMessage, socket: net.Socket, head: Buffer) => {
    const entry = entryOf(request);
    if (entry) return void upgrade(entry.passage, request, socket, head, entry.callId);
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
        hosts: run.anyHost ? everyHost : createHostList({ ...run, operatorHosts }),
        mapping: createMapping(run.urlMap),
        places: createPlaces(run.allowPrivate),
        slots: createSlots(limits.concurrent),
        lookup: lookup ?? ((hostname) => dns.lookup(hostname, { all: true })),
        now,
        ended,
        purpose: run.purpose ?? "task",
        isProduct: productHosts(run),
        isMcp: mcpServersOf(run),
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
