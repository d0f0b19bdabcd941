import { mkdtempSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "./until.ts";

/**
 * A port on which nothing listens. It is below those that the system gives to servers without a port of their own, such as those of other tests, so it
 * stays free until it is used.
 */
export async function freePort(host = "127.0.0.1"): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    const isFree = await new Promise<boolean>((resolve) => {
      const server = createServer().once("error", () => resolve(false));
      server.listen(port, host, () => server.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}

type Options = {
  /** The server also listens on this local address. */
  address?: string;
  password?: string;
  /** Further arguments of redis-server. */
  options?: string[];
};

/** Debian's Redis on a free loopback port, with its data in a new folder, once it answers. */
export async function startRedis({ address, password = "", options = [] }: Options = {}) {
  const host = address ?? "127.0.0.1";
  const port = await freePort(host);
  const folder = mkdtempSync(join(tmpdir(), "evald-test-redis-"));
  let server = start();

  function start() {
    const place = ["--port", String(port), "--bind", "127.0.0.1", ...(address ? [address] : []), "--dir", folder];
    const args = [...place, "--appendonly", "yes", "--save", "", "--requirepass", password, ...options];
    return Bun.spawn(["redis-server", ...args], { stdout: "ignore", stderr: "ignore", stdin: "ignore" });
  }

  /** Runs one command of redis-cli. */
  async function command(...args: string[]): Promise<string> {
    const login = password ? ["--no-auth-warning", "-a", password] : [];
    const { stdout } = Bun.spawn(["redis-cli", "-p", String(port), ...login, ...args], { stderr: "ignore" });
    return (await new Response(stdout).text()).trim();
  }

  const isUp = () => until("Redis answers", async () => (await command("ping")) === "PONG");
  await isUp();
  return {
    url: `redis://${password && `:${password}@`}${host}:${port}`,
    folder,
    command,
    /** Ends the server as a crash would. */
    async kill(): Promise<void> {
      server.kill("SIGKILL");
      await server.exited;
    },
    /** Starts it again with what it had stored, and waits until it answers. */
    async restart(): Promise<void> {
      server = start();
      await isUp();
    },
  };
}
