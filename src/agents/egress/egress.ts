import { promises as dns } from "node:dns";
import type http from "node:http";
import type { AllowRule } from "../../config/allow-rules.ts";
import { createAddressPolicy } from "../../net/addresses.ts";
import { type Edits, editsOf } from "../../net/edits.ts";
import { createHostList, everyHost } from "../../net/hosts.ts";
import { createMapping } from "../../net/mapping.ts";
import { refuse, serveProxy } from "../../net/proxy.ts";
import type { Lookup } from "../../net/resolve.ts";
import { createSlots } from "../../net/slots.ts";
import type { AgentEvent } from "../agent.ts";
import type { EgressLimits, EgressPolicy } from "./exchange.ts";
import { forwardRequest } from "./forward.ts";
import { openTunnelTo } from "./tunnel.ts";

/** What a run may reach, and its limits. */
export type EgressRun = {
  /** Allows every host, at addresses that are public or in `allowPrivate`. */
  anyHost?: true;
  /** Product URL and start URLs: exactly these hosts are allowed. */
  urls: string[];
  /** Docs URLs: their hosts and all subdomains are allowed. */
  docsUrls: string[];
  /** URLs of MCP servers. Their hosts are also in `urls`. */
  mcpUrls?: string[];
  urlMap: Record<string, string>;
  edits?: Edits | undefined;
  /** A site that exists only within the run: its host name, and the socket that answers for it. */
  site?: { hostname: string; socketPath: string } | null;
  /** Private addresses that the operator allowed. All others are blocked. */
  allowPrivate: readonly AllowRule[];
  limits?: Partial<EgressLimits>;
  /** Purpose of its requests. Default: `task`. */
  purpose?: "task" | "page";
  /** Called for every finished request and every limit that is reached. */
  onEvent(event: AgentEvent): void;
};

/** A run's access to the proxy. */
export type EgressSession = {
  /** The password for basic authentication at the proxy (with any user name), or its bearer token. */
  token: string;
  /** Aborts open requests and revokes the token. */
  close(): void;
};

/** The proxy that connects sandboxes with the network, on a Unix socket. */
export type Egress = {
  socketPath: string;
  open(run: EgressRun): EgressSession;
  close(): Promise<void>;
};

type EgressOptions = {
  /** Path of the unix socket, in a folder that only the service can access. */
  socketPath: string;
  operatorHosts: readonly string[];
  /** Milliseconds, to measure durations. */
  now: () => number;
  /** Resolves a host name. Default: the system's resolver. */
  lookup?: Lookup;
};

/** The run that a request belongs to, and the tool call that sent it. */
type Sender = { policy: EgressPolicy; callId: string | null };

/** The user name of clients outside a tool call. */
const noCallUser = "run";

/** Matches the hosts that the run names or maps, because any of them may be the product. Package registries are allowed, but not matched. */
function productHostMatcher({ urls, docsUrls, urlMap }: EgressRun): (hostname: string) => boolean {
  const mappedUrls = Object.keys(urlMap).map((host) => (host.includes("://") ? host : `https://${host}`));
  const hosts = [...urls, ...docsUrls, ...mappedUrls].flatMap((url) => URL.parse(url)?.hostname ?? []);
  return (hostname) => hosts.some((host) => hostname === host || hostname.endsWith(`.${host}`));
}

/** Matches the URLs of MCP servers, URLs below them, and URLs at which their clients look for a way to sign in. */
function mcpUrlMatcher({ mcpUrls = [] }: EgressRun): (url: URL) => boolean {
  const servers = mcpUrls.flatMap((url) => URL.parse(url) ?? []);
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
 * The only network access of a sandbox: an HTTP proxy on a unix socket that requires a run's token. It allows the run's own hosts or every host, at
 * addresses that are public or that the operator allowed. It applies urlMap and edits to absolute URLs, and reports every request. Tunnels (CONNECT)
 * are not decrypted, so only their host is visible.
 */
export async function startEgress(options: EgressOptions): Promise<Egress> {
  const { socketPath } = options;
  const policies = new Map<string, EgressPolicy>();
  // A connection that has authenticated doesn't need to do so again.
  const senderByConnection = new WeakMap<object, Sender>();

  function senderOf(request: http.IncomingMessage): Sender | null {
    const { user, token } = credentialsOf(request);
    const policy = policies.get(token);
    const callId = user === "" || user === noCallUser ? null : user;
    const sender = policy ? { policy, callId } : senderByConnection.get(request.socket);
    if (!sender || sender.policy.endController.signal.aborted) return null;
    senderByConnection.set(request.socket, sender);
    return sender;
  }

  const server = await serveProxy(socketPath, {
    onRequest(client) {
      const sender = senderOf(client.request);
      if (sender) forwardRequest(sender.policy, client, sender.callId);
      else refuseStranger(client);
    },
    onTunnel(request, socket, head) {
      const sender = senderOf(request);
      if (sender) openTunnelTo(sender.policy, request, socket, head, sender.callId);
      else refuseStranger({ socket });
    },
  });

  return {
    socketPath,
    open(run) {
      const policy = toPolicy(run, options);
      policies.set(policy.token, policy);
      return {
        token: policy.token,
        close() {
          policies.delete(policy.token);
          policy.endController.abort();
        },
      };
    },
    async close() {
      for (const { endController } of policies.values()) endController.abort();
      await server.close();
    },
  };
}

/**
 * The token in the credentials of a request, and the user name beside it. The program that connects a sandbox to this proxy (bridge.ts) sends
 * the ID of the tool call as the user name. Programs in the sandbox never see these credentials.
 */
function credentialsOf({ headers }: http.IncomingMessage): { user: string; token: string } {
  const [, scheme = "", value = ""] = /^(\S+)\s+(\S+)$/.exec(headers["proxy-authorization"] ?? "") ?? [];
  const [, user, password] = /^(.*):([^:]*)$/s.exec(Buffer.from(value, "base64").toString()) ?? [];
  if (!/^basic$/i.test(scheme) || user === undefined || password === undefined) return { user: "", token: value };
  return { user, token: password };
}

const refuseStranger = (client: Parameters<typeof refuse>[0]): void =>
  refuse(client, 407, "The evald proxy requires the token of a run in progress.", {
    "proxy-authenticate": 'Basic realm="evald"',
  });

function toPolicy(run: EgressRun, { operatorHosts, lookup, now }: EgressOptions): EgressPolicy {
  const limits = { ...defaultLimits, ...run.limits };
  return {
    token: Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url"),
    limits,
    hosts: run.anyHost ? everyHost : createHostList({ ...run, operatorHosts }),
    mapping: createMapping(run.urlMap),
    edits: editsOf(run),
    siteSocketOf: ({ hostname }) => (hostname === run.site?.hostname ? run.site.socketPath : null),
    addressPolicy: createAddressPolicy(run.allowPrivate),
    slots: createSlots(limits.concurrent),
    lookup: lookup ?? ((hostname) => dns.lookup(hostname, { all: true })),
    now,
    endController: new AbortController(),
    purpose: run.purpose ?? "task",
    isProduct: productHostMatcher(run),
    isMcp: mcpUrlMatcher(run),
    onEvent: run.onEvent,
    usage: { requests: 0, bytesOut: 0, bytesIn: 0 },
  };
}
