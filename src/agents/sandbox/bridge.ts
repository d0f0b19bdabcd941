import { closeSync, readFileSync } from "node:fs";
import net from "node:net";
import { constants } from "node:os";
import { openTunnel, splice } from "../../net/tunnel.ts";
import { firstCall } from "../../once.ts";
import { maxStartMs, prepareToLowerPriority } from "../priority.ts";
import { protectProcess } from "./process-protection.ts";

/** A port on the sandbox's loopback, and the unix socket behind it. */
export type BridgePort = {
  port: number;
  socket: string;
  /** The token to add to the first request of each connection, so that programs in the sandbox need no credentials. */
  proxyToken?: string;
  /** The user name that goes with the token: the ID of the tool call. */
  proxyUser?: string | undefined;
} & Partial<Omit<BridgeRoute, "port">>;

/** A port for a port of a host. Each connection to it gets a tunnel, so that programs need not know the proxy. */
export type BridgeRoute = { port: number; hostname: string; hostPort: number };

const forwardedSignals = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;
const maxRequestLine = 64 * 1024;

/** Where programs in the sandbox find the model gateway and the network proxy. */
export const bridgePorts = { gateway: 8801, egress: 3128 };

/** A script that Node.js loads before a program, and the variable from which it reads the routes, as JSON (see node-routes.cjs). */
export const nodeRoutes = "/run/evald/node-routes.cjs";
const routesVariable = "EVALD_ROUTES";

/**
 * The variable with the file descriptor from which the bridge reads its ports, as JSON. It is removed from the command's environment. The ports
 * aren't passed in a variable or a file, because the command could read the token of the proxy there.
 */
export const bridgeVariable = "EVALD_BRIDGE";

/**
 * The executable's own part inside a sandbox. It listens on loopback ports, pipes them to unix sockets, runs one
 * command in `/workspace` with its stdio, forwards signals, and exits with its exit code (127: program not found; 128 +
 * n: ended by signal n).
 */
export async function runBridge(argv: string[], variables: Record<string, string | undefined>): Promise<number> {
  const { [bridgeVariable]: descriptor, ...env } = variables;
  const ports = readPorts(Number(descriptor));
  const callsModel = ports.some(({ port }) => port === bridgePorts.gateway);
  // A new run does not wait for runs in progress: its agent has normal priority until it first calls its model.
  const lowerOwnPriority = firstCall(prepareToLowerPriority());
  // The command runs as the same user, and must not learn the token of the proxy.
  protectProcess();
  if (callsModel) setTimeout(lowerOwnPriority, maxStartMs).unref();
  else lowerOwnPriority();
  const servers = await Promise.all(
    ports.map((port) => openPort(port, port.port === bridgePorts.gateway ? lowerOwnPriority : () => {})),
  );
  const hasProxy = ports.some(({ port }) => port === bridgePorts.egress);
  let child: Bun.Subprocess | undefined;
  // The handlers are set before the command starts, so that an early signal doesn't end the bridge instead.
  for (const signal of forwardedSignals) process.on(signal, () => child?.kill(signal));
  try {
    child = Bun.spawn(argv, {
      cwd: "/workspace",
      env: {
        ...(hasProxy && proxyVariables(bridgePorts.egress)),
        ...env,
        ...nodeVariables(ports, env),
        PWD: "/workspace",
      },
      stdio: ["inherit", "inherit", "inherit"],
    });
    await child.exited;
    return child.exitCode ?? 128 + (constants.signals[child.signalCode as NodeJS.Signals] ?? constants.signals.SIGKILL);
  } catch (error) {
    const reason = error instanceof Error ? error.message : error;
    await Bun.write(Bun.stderr, `evald: ${argv[0]} cannot be run: ${reason}\n`);
    return 127;
  } finally {
    for (const close of servers) close();
  }
}

function readPorts(descriptor: number): BridgePort[] {
  const ports: BridgePort[] = JSON.parse(readFileSync(descriptor, "utf8"));
  closeSync(descriptor);
  return ports;
}

/** Opens a port. Returns a function that closes the port and its connections, because the bridge ends with its command. */
async function openPort(bridgePort: BridgePort, onConnection: () => void): Promise<() => void> {
  const { port, hostname } = bridgePort;
  const connections = new Set<net.Socket>();
  const server = net.createServer({ allowHalfOpen: true }, (client) => {
    onConnection();
    connections.add(client);
    client.on("close", () => connections.delete(client));
    client.on("error", () => client.destroy());
    connect(bridgePort, client).catch(() => client.destroy());
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  // For a route, the server listens without an address, because programs may look up localhost as IPv4 or as IPv6.
  if (hostname === undefined) server.listen(port, "127.0.0.1", resolve);
  else server.listen(port, resolve);
  await promise;
  return () => {
    server.close();
    for (const connection of connections) connection.destroy();
  };
}

/** Connects a client to the socket of its port, or through a tunnel to a host. Throws if the proxy refuses the tunnel. */
async function connect(bridgePort: BridgePort, client: net.Socket): Promise<void> {
  const { socket: path, hostname, hostPort } = bridgePort;
  const authorization = authorizationOf(bridgePort);
  if (hostname !== undefined) {
    const server = await openTunnel({ path, target: `${hostname}:${hostPort}`, authorization });
    await splice(client, server);
    return;
  }
  const server = net.connect({ path, allowHalfOpen: true });
  server.on("error", () => client.destroy());
  client.on("close", () => server.destroySoon());
  const clientHead = authorization === undefined ? Buffer.alloc(0) : await readAuthorized(client, authorization);
  await splice(client, server, { clientHead });
}

const authorizationOf = ({ proxyToken, proxyUser = "run" }: BridgePort): string | undefined =>
  proxyToken && `Basic ${Buffer.from(`${proxyUser}:${proxyToken}`).toString("base64")}`;

/** Reads the first request line of a client and whatever arrived with it. Adds the run's token. Throws if the line is too long. */
async function readAuthorized(client: net.Socket, authorization: string): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  let head = Buffer.alloc(0);
  const onData = (chunk: Buffer) => {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf("\r\n");
    if (end < 0 && head.length <= maxRequestLine) return;
    client.off("data", onData);
    client.pause();
    if (end < 0) reject(new Error("The request line is too long."));
    else resolve(end + 2);
  };
  client.on("data", onData);
  const start = await promise;
  const header = Buffer.from(`Proxy-Authorization: ${authorization}\r\n`);
  return Buffer.concat([head.subarray(0, start), header, head.subarray(start)]);
}

/** Variables with the routes for Node.js. Ports on loopback need no route, because they are the same inside. */
function nodeVariables(ports: BridgePort[], { NODE_OPTIONS = "" }: Record<string, string | undefined>) {
  const routes = ports.filter(({ port, hostPort }) => hostPort !== undefined && hostPort !== port);
  if (routes.length === 0) return {};
  return {
    NODE_OPTIONS: `--require=${nodeRoutes} ${NODE_OPTIONS}`.trim(),
    [routesVariable]: JSON.stringify(
      Object.fromEntries(routes.map(({ hostname, hostPort, port }) => [`${hostname}:${hostPort}`, port])),
    ),
  };
}

/** The variables in which programs look for a proxy. Java tools have no such variables. */
function proxyVariables(port: number): Record<string, string> {
  const url = `http://127.0.0.1:${port}`;
  const loopbackHosts = "localhost,127.0.0.1,::1";
  const java = ["http", "https"].map((kind) => `-D${kind}.proxyHost=127.0.0.1 -D${kind}.proxyPort=${port}`).join(" ");
  const names = "HTTP_PROXY HTTPS_PROXY http_proxy https_proxy npm_config_proxy npm_config_https_proxy".split(" ");
  return {
    ...Object.fromEntries(names.map((name) => [name, url])),
    NO_PROXY: loopbackHosts,
    no_proxy: loopbackHosts,
    npm_config_noproxy: loopbackHosts,
    NODE_USE_ENV_PROXY: "1",
    MAVEN_OPTS: java,
    GRADLE_OPTS: java,
  };
}
