import { mkdirSync, mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { AllowRule } from "../../config/allow-rules.ts";
import { type AgentEvent, AgentFailure, type EventSource, type Means } from "../agent.ts";
import { type Egress, startEgress } from "../egress/egress.ts";
import type { GatewayOpener } from "../gateway/opener.ts";
import type { ModelAccess } from "../gateway/prices.ts";
import { detectBrowser, type FoundBrowser } from "../sandbox/chromium.ts";
import { detectSandbox, type Sandbox } from "../sandbox/sandbox.ts";
import { makeSocketFolder, sweepSockets } from "../sockets.ts";
import { addressesOf, type Task } from "../task.ts";

type Options = {
  now: () => number;
  gateway: GatewayOpener;
  /** Where each run gets its workspace; null: next to the socket of its proxy, in the temporary folder. */
  folder: string | null;
  operatorHosts: readonly string[];
};

type Run = {
  task: Task;
  model: ModelAccess;
  /** The archive that the workspace starts with. */
  archive: Uint8Array | null;
  /** The run has a spending limit, so models without a known price are rejected. */
  mustHavePrice: boolean;
  allow: readonly AllowRule[];
  /** Called with the events of the gateway and the proxy. */
  onEvent: (event: AgentEvent, source: EventSource) => void;
  /** Called once, when the run can't continue with its model. */
  onFailure: (failure: AgentFailure) => void;
};

/** What one run of an agent with a model works with. `secrets` must not appear in anything that is stored. */
type Equipment = {
  means: Means;
  secrets: string[];
  /** Warns the agent, in the next response of its model, that a limit is near. */
  warn: (limit: string) => void;
  close: () => Promise<void>;
};

export type Host = ReturnType<typeof createHost>;

/**
 * The service's side of agents with a model: for each run, it opens access to the model, the network proxy and the
 * workspace, and closes them.
 */
export function createHost({ now, gateway, folder, operatorHosts }: Options) {
  let sandbox: Promise<Sandbox> | undefined;
  let browser: Promise<FoundBrowser> | undefined;
  let egress: Promise<{ egress: Egress; home: string }> | undefined;

  async function listen() {
    const { folder: home, socketPath } = makeSocketFolder("egress");
    return { egress: await startEgress({ socketPath, operatorHosts, now }), home };
  }

  function makeWorkspace(home: string): string {
    if (folder) mkdirSync(folder, { recursive: true, mode: 0o700 });
    return mkdtempSync(resolve(folder ?? home, "run-"));
  }

  async function openSandbox({ task, archive, allow, onEvent }: Run) {
    sandbox ??= detectSandbox();
    const { level, detail } = await sandbox;
    browser ??= sandbox.then(detectBrowser);
    const found = await browser;
    const missing = { missing: "missing" in found ? found.missing : detail };
    if (level === "none") return { sandbox: { missing: detail }, browser: missing, secrets: [], close: async () => {} };
    egress ??= listen();
    const proxy = await egress;
    const workspace = makeWorkspace(proxy.home);
    const own = mkdtempSync(resolve(proxy.home, "agent-"));
    const terms = {
      ...addressesOf(task),
      urlMap: task.urlMap,
      allowPrivate: allow,
      onEvent: (event: AgentEvent) => onEvent(event, "egress"),
    };
    const bytesOut = task.limits.maxBytesOut;
    const session = proxy.egress.open({ ...terms, limits: { requests: task.limits.maxRequests, bytesOut } });
    const setUpHosts = [...terms.addresses, ...(task.workspace?.repository ? [task.workspace.repository.url] : [])];
    // Requests of the set-up are not the agent's.
    const setup = task.workspace ? proxy.egress.open({ ...terms, addresses: setUpHosts, onEvent: () => {} }) : null;
    // Pages send dozens of requests that the agent didn't make, so they are counted separately.
    const ofPages = "program" in found ? proxy.egress.open({ ...terms, limits: { bytesOut }, purpose: "page" }) : null;
    const archivePath = join(own, "archive.tar.gz");
    if (archive) await Bun.write(archivePath, archive);
    const accessOf = ({ token }: { token: string }) => ({ path: proxy.egress.socketPath, token });
    return {
      sandbox: {
        ...{ workspace, folder: own, egress: accessOf(session) },
        archive: archive ? archivePath : null,
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

  return {
    async equip(run: Run): Promise<Equipment> {
      const { model, mustHavePrice, onEvent, onFailure } = run;
      const place = await openSandbox(run).catch((error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error);
        throw new AgentFailure("infrastructure", `the workspace could not be created: ${reason}`, { retryable: true });
      });
      const session = (await gateway.open()).openSession({
        model,
        mustHavePrice,
        limits: run.task.limits.model,
        // A silent model is reported before the agent counts as idle.
        silenceMs: run.task.limits.idleMs / 2,
        onEvent: (event) => onEvent(event, "gateway"),
        onFailure,
      });
      const { id, provider, name } = model;
      const { socketPath, token } = session;
      return {
        means: {
          model: { id, provider, name, socketPath, token },
          sandbox: place.sandbox,
          browser: place.browser,
          operatorHosts,
        },
        secrets: [token, ...place.secrets],
        warn: session.warn,
        async close() {
          await Promise.all([place.close(), session.close()]);
        },
      };
    },
    /** Removes what a killed service left behind. Requires the data lock. */
    async sweep(): Promise<void> {
      if (folder) await remove(folder);
      await sweepSockets(now());
    },
    /** Call it when no run is active. */
    async close(): Promise<void> {
      const proxy = await egress;
      egress = undefined;
      await proxy?.egress.close();
      if (proxy) await remove(proxy.home);
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
