import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type Agent, AgentFailure, type Means } from "../agents/agent.ts";
import { type Egress, startEgress } from "../agents/egress/egress.ts";
import { detectBrowser } from "../agents/sandbox/chromium.ts";
import { detectSandbox } from "../agents/sandbox/sandbox.ts";
import { makeSocketFolder, sweepSockets } from "../agents/sockets.ts";
import { addressesOf, mcpUrlsOf } from "../agents/task.ts";
import { maxRedirects } from "../net/guarded.ts";
import { once } from "../once.ts";
import type { Place, PlaceLink, PlaceOrder } from "./place.ts";

/** What a connection sends besides the bodies of requests: a TLS handshake and headers. */
const headBytes = 64 * 1024;

type Options = {
  /** By ID. */
  agents: Record<string, Agent>;
  now: () => number;
  /** Where each run gets its workspace; null: next to the socket of its proxy, in the temporary folder. */
  folder: string | null;
  operatorHosts: readonly string[];
};

type Opened = Pick<Means, "sandbox" | "browser"> & { secrets: string[]; close: () => Promise<void> };

/** This machine. For each run of an agent with a model, it opens the network proxy and the workspace, and closes them. */
export function createLocalPlace({ agents, now, folder, operatorHosts }: Options) {
  let proxy: { egress: Egress; home: string } | undefined;
  const findSandbox = once(detectSandbox, ({ level }) => level !== "none");
  const findBrowser = once(
    async () => detectBrowser(await findSandbox()),
    (found) => !("missing" in found),
  );
  const openProxy = once(async () => {
    const { folder: home, socketPath } = makeSocketFolder("egress");
    try {
      proxy = { egress: await startEgress({ socketPath, operatorHosts, now }), home };
      return proxy;
    } catch (error) {
      await remove(home);
      throw error;
    }
  });

  /** What this machine offers. */
  const detect = () => Promise.all([findSandbox(), findBrowser()]);

  const folders = createFolders(folder, async () => (await openProxy()).home);

  /** Tunnels, in which the agent's own guard sends its requests and reports them. */
  async function openEgress({ task, allow }: PlaceOrder, { hide, onEgress }: PlaceLink) {
    const { wallClockMs, maxRequests, maxBytesOut } = task.limits;
    const { egress: proxy } = await openProxy();
    const connections = (1 + maxRedirects) * maxRequests;
    const session = proxy.open({
      ...{ anyHost: true, addresses: [], docsAddresses: [], urlMap: {}, allowPrivate: allow },
      // Never reached by an agent that keeps its limits.
      limits: {
        ...{ requests: connections, concurrent: connections, requestMs: wallClockMs },
        bytesOut: maxBytesOut + connections * headBytes,
      },
      onEvent: (event) => event.type === "limit" && onEgress(event),
    });
    hide([session.token]);
    return { ...session, path: proxy.socketPath };
  }

  async function openSandbox(order: PlaceOrder, onEgress: PlaceLink["onEgress"]): Promise<Opened> {
    const { task, archive, skillsArchive, allow } = order;
    const [{ level, detail }, found] = await detect();
    const missing = { missing: "missing" in found ? found.missing : detail };
    if (level === "none") return { sandbox: { missing: detail }, browser: missing, secrets: [], close: async () => {} };
    const proxy = await openProxy();
    const { workspace, own } = await folders.take();
    const terms = {
      ...addressesOf(task),
      mcpUrls: mcpUrlsOf(task.workspace),
      urlMap: task.urlMap,
      allowPrivate: allow,
      onEvent: onEgress,
    };
    const bytesOut = task.limits.maxBytesOut;
    const session = proxy.egress.open({ ...terms, limits: { requests: task.limits.maxRequests, bytesOut } });
    const setUpHosts = [...terms.addresses, ...(task.workspace?.repository ? [task.workspace.repository.url] : [])];
    // Requests of the setup are not the agent's.
    const setup = task.workspace ? proxy.egress.open({ ...terms, addresses: setUpHosts, onEvent: () => {} }) : null;
    // Pages send dozens of requests that the agent didn't make, so they are counted separately.
    const ofPages = "program" in found ? proxy.egress.open({ ...terms, limits: { bytesOut }, purpose: "page" }) : null;
    const keep = async (name: string, data: Uint8Array | null) => {
      const path = join(own, name);
      if (data) await Bun.write(path, data);
      // The process of an agent may be another user's. The folder around it is closed to all others.
      if (data) chmodSync(path, 0o644);
      return data ? path : null;
    };
    const accessOf = ({ token }: { token: string }) => ({ path: proxy.egress.socketPath, token });
    return {
      sandbox: {
        ...{ workspace: { path: workspace, holder: null }, folder: own, egress: accessOf(session) },
        archive: await keep("archive.tar.gz", archive),
        skillsArchive: await keep("skills.tar.gz", skillsArchive),
        setup: setup && accessOf(setup),
      },
      browser: "program" in found && ofPages ? { program: found.program, egress: accessOf(ofPages) } : missing,
      secrets: [session, ofPages, setup].flatMap((each) => each ?? []).map(({ token }) => token),
      async close() {
        session.close();
        ofPages?.close();
        setup?.close();
        await Promise.all([remove(workspace), remove(own)]);
      },
    };
  }

  async function openFor(order: PlaceOrder, { hide, onEgress }: PlaceLink): Promise<Opened> {
    try {
      const opened = await openSandbox(order, onEgress);
      hide(opened.secrets);
      return opened;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new AgentFailure("infrastructure", `the workspace could not be created: ${reason}`, { retryable: true });
    }
  }

  return {
    async *run(order, link) {
      const { task, model, allow } = order;
      const agent = agents[order.agent];
      if (!agent) throw new AgentFailure("infrastructure", `the agent ${order.agent} does not exist here`);
      if (order.labels.length > 0)
        throw new AgentFailure(
          "infrastructure",
          `the prompt needs a worker with the labels ${order.labels.join(", ")}, but this server runs agents itself; remove its worker labels, or set EVALD_REDIS_URL and start a worker`,
        );
      const opened = model && (await openFor(order, link));
      const means = model && opened && { model, sandbox: opened.sandbox, browser: opened.browser, operatorHosts };
      try {
        link.onStart(agent.describe().version);
        const context = { signal: link.signal, now, startedAt: now(), allow, means };
        yield* agent.run(task, { ...context, openEgress: () => openEgress(order, link) });
      } finally {
        link.onEnd();
        await opened?.close();
      }
    },
    /** The path of the network proxy's socket, which it opens. */
    openSocket: async (): Promise<string> => (await openProxy()).egress.socketPath,
    /** The folders of one of the next runs with a sandbox. */
    openFolders: folders.open,
    /** Does what the first run would have to wait for. That run reports errors. */
    prepare(): void {
      detect().catch(() => {});
    },
    /** Removes what a killed service left behind. Requires the data lock. */
    async sweep(): Promise<void> {
      // The folder itself may be mounted in the sandbox of a process that waits for a run.
      if (folder && existsSync(folder))
        await Promise.all(readdirSync(folder).map((name) => remove(join(folder, name))));
      await sweepSockets();
    },
    /** Call it when no run is active. */
    async close(): Promise<void> {
      await folders.close();
      await proxy?.egress.close();
      if (proxy) await remove(proxy.home);
    },
  } satisfies Place & Record<string, unknown>;
}

/** The workspaces of runs, each with a folder for everything else that its run stores. */
function createFolders(parent: string | null, homeOf: () => Promise<string>) {
  /** Those of the next runs. Processes that wait for them have access to them already, most likely to the last ones. */
  const ahead: { workspace: string; own: string }[] = [];

  async function make() {
    const home = await homeOf();
    if (parent) mkdirSync(parent, { recursive: true, mode: 0o700 });
    return { workspace: mkdtempSync(resolve(parent ?? home, "run-")), own: mkdtempSync(resolve(home, "agent-")) };
  }

  return {
    take: async () => ahead.pop() ?? make(),
    async open(): Promise<string[]> {
      const made = await make();
      ahead.push(made);
      return [made.workspace, made.own];
    },
    async close(): Promise<void> {
      await Promise.all(ahead.splice(0).flatMap(({ workspace, own }) => [remove(workspace), remove(own)]));
    },
  };
}

/**
 * Runs outside the event loop, because a folder may contain thousands of files. Commands may have left folders without
 * permissions.
 */
async function remove(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch {
    await Bun.spawn(["chmod", "-R", "u+rwX", "--", path]).exited;
    await Bun.spawn(["rm", "-rf", "--", path]).exited;
  }
}
