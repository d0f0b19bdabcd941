import net from "node:net";
import { constants } from "node:os";
import { lowerPriority } from "../priority.ts";

/** A port on the sandbox's loopback, and the unix socket behind it. */
export type BridgePort = {
  port: number;
  socket: string;
  /** Added to the first request of each connection, so that programs in the sandbox need no credentials. */
  proxyToken?: string;
  /** The user name that goes with the token: the ID of the tool call. */
  proxyUser?: string | undefined;
} & Partial<Omit<BridgeRoute, "port">>;

/** A port whose connections each get a tunnel to a port of a host, so that programs need not know the proxy. */
export type BridgeRoute = { port: number; hostname: string; hostPort: number };

const passedOn = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;
const maxRequestLine = 64 * 1024;

/** Where programs in the sandbox find the model gateway and the network proxy. */
export const bridgePorts = { gateway: 8801, egress: 3128 };

/** A script that Node.js loads before a program, and the variable from which it reads the routes, as JSON (see node-routes.cjs). */
export const nodeRoutes = "/run/evald/node-routes.cjs";
const routesVariable = "EVALD_ROUTES";

/** The variable that passes the ports to the bridge, as JSON. It is removed from the command's environment. */
export const bridgeVariable = "EVALD_BRIDGE";

/**
 * The executable's own part inside a sandbox. It listens on loopback ports, pipes them to unix sockets, runs one
 * command in `/workspace` with its stdio, forwards signals, and exits with its exit code (127: program not found; 128 +
 * n: ended by signal n).
 */
export async function runBridge(argv: string[], variables: Record<string, string | undefined>): Promise<number> {
  lowerPriority(process.pid);
  const { [bridgeVariable]: described = "[]", ...env } = variables;
  const ports = JSON.parse(described) as BridgePort[];
  const servers = await Promise.all(ports.map(open));
  const proxied = ports.some(({ port }) => port === bridgePorts.egress);
  let child: Bun.Subprocess | undefined;
  // Before the command starts, so that an early signal doesn't end the bridge instead.
  for (const signal of passedOn) process.on(signal, () => child?.kill(signal));
  try {
    child = Bun.spawn(argv, {
      cwd: "/workspace",
      env: {
        ...(proxied && proxyVariables(bridgePorts.egress)),
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

/** Returns a function that closes the port and its connections, because the bridge ends with its command. */
async function open({
  port,
  socket,
  proxyToken,
  proxyUser = "run",
  hostname,
  hostPort,
}: BridgePort): Promise<() => void> {
  const connections = new Set<net.Socket>();
  const server = net.createServer({ allowHalfOpen: true }, (inner) => {
    connections.add(inner);
    inner.on("close", () => connections.delete(inner));
    const outer = net.connect({ path: socket, allowHalfOpen: true });
    inner.on("error", () => outer.destroy());
    outer.on("error", () => inner.destroy());
    inner.on("close", () => outer.destroy());
    outer.on("close", () => inner.destroy());
    const userAndToken = `${proxyUser}:${proxyToken}`;
    if (hostname !== undefined) {
      connectTo(`${hostname}:${hostPort}`, inner, outer, userAndToken);
      return;
    }
    carry(outer, inner);
    if (proxyToken === undefined) carry(inner, outer);
    else introduce(inner, outer, userAndToken);
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  // Without an address: programs may look up localhost as either.
  if (hostname === undefined) server.listen(port, "127.0.0.1", resolve);
  else server.listen(port, resolve);
  await promise;
  return () => {
    server.close();
    for (const connection of connections) connection.destroy();
  };
}

/** Pipes and ends. With `pipe` alone, process.stdout would be used and no longer be blocking. */
function carry(from: net.Socket, to: net.Socket): void {
  from.pipe(to, { end: false });
  from.on("end", () => to.end());
}

/** Pipes, and adds the run's token after the first request line. */
function introduce(inner: net.Socket, outer: net.Socket, userAndToken: string): void {
  let head = Buffer.alloc(0);
  const take = (chunk: Buffer) => {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf("\r\n");
    if (end < 0 && head.length <= maxRequestLine) return;
    inner.off("data", take);
    if (end < 0) {
      inner.destroy();
      return;
    }
    outer.write(head.subarray(0, end + 2));
    outer.write(authorization(userAndToken));
    outer.write(head.subarray(end + 2));
    carry(inner, outer);
  };
  inner.on("data", take);
}

const authorization = (userAndToken: string) =>
  `Proxy-Authorization: Basic ${Buffer.from(userAndToken).toString("base64")}\r\n`;

/** Pipes through a tunnel; disconnects if the proxy refuses it. */
function connectTo(place: string, inner: net.Socket, outer: net.Socket, userAndToken: string): void {
  outer.write(`CONNECT ${place} HTTP/1.1\r\nHost: ${place}\r\n${authorization(userAndToken)}\r\n`);
  let head = Buffer.alloc(0);
  const take = (chunk: Buffer) => {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0 && head.length <= maxRequestLine) return;
    outer.off("data", take);
    if (!/^HTTP\/1\.1 200 /.test(head.toString("latin1"))) {
      inner.destroy();
      return;
    }
    inner.write(head.subarray(end + 4));
    carry(outer, inner);
    carry(inner, outer);
  };
  outer.on("data", take);
}

/** The routes for Node.js. Loopback has none, because its ports are the same inside. */
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

/** The variables in which programs look for a proxy; Java tools have none of their own. */
function proxyVariables(port: number): Record<string, string> {
  const url = `http://127.0.0.1:${port}`;
  const own = "localhost,127.0.0.1,::1";
  const java = ["http", "https"].map((kind) => `-D${kind}.proxyHost=127.0.0.1 -D${kind}.proxyPort=${port}`).join(" ");
  const proxies = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "http_proxy",
    "https_proxy",
    "npm_config_proxy",
    "npm_config_https_proxy",
  ];
  return {
    ...Object.fromEntries(proxies.map((name) => [name, url])),
    NO_PROXY: own,
    no_proxy: own,
    npm_config_noproxy: own,
    NODE_USE_ENV_PROXY: "1",
    MAVEN_OPTS: java,
    GRADLE_OPTS: java,
  };
}
