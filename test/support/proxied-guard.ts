import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEgress } from "../../src/agents/egress/egress.ts";
import { createGuard, type Guard, type GuardOptions } from "../../src/net/guarded.ts";

/** A guard without lookups of its own: its connections are tunnels through an egress proxy that has the rules and makes the lookups. */
export function createProxiedGuard({ lookup, ...options }: GuardOptions): { guard: Guard; stop: () => Promise<void> } {
  const home = mkdtempSync(join(tmpdir(), "evald-test-egress-"));
  const proxy = { path: join(home, "socket"), token: "" };
  const noLookup = () => Promise.reject(new Error("looked up by the client"));
  const guard = createGuard({ ...options, proxy, lookup: noLookup });
  const start = async () => {
    const own = { socketPath: proxy.path, operatorHosts: [], now: Date.now, ...(lookup && { lookup }) };
    const egress = await startEgress(own);
    const hosts = { anyHost: true as const, urls: [], docsUrls: [], urlMap: {} };
    proxy.token = egress.open({ ...hosts, allowPrivate: options.allow, onEvent: () => {} }).token;
    return egress;
  };
  const started = start();
  return {
    guard: {
      ...guard,
      async request(url, init) {
        await started;
        return guard.request(url, init);
      },
    },
    async stop() {
      await (await started).close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}
