import { mkdirSync, mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { resolve } from "node:path";
import type { AllowRule } from "../../config/allow-rules.ts";
import { type AgentEvent, AgentFailure, addressesOf, type EventSource, type Means, type Task } from "../agent.ts";
import { type Egress, startEgress } from "../egress/egress.ts";
import type { GatewayOpener } from "../gateway/opener.ts";
import type { ModelAccess } from "../gateway/prices.ts";
import { detectBrowser, type FoundBrowser } from "../sandbox/chromium.ts";
import { detectSandbox, type Sandbox } from "../sandbox/sandbox.ts";
import { makeSocketFolder, sweepSockets } from "../sockets.ts";

type Options = {
  now: () => number;
  gateway: GatewayOpener;
  /** Where each run gets a folder to work in; null: beside the socket of its way out, among the temporary files. */
  folder: string | null;
  operatorHosts: readonly string[];
};

type Run = {
  task: Task;
  model: ModelAccess;
  /** Its money is bounded: a model whose price nobody states is refused. */
  mustHavePrice: boolean;
  allow: readonly AllowRule[];
  /** Hears what the gateway and the egress saw. */
  onEvent: (event: AgentEvent, source: EventSource) => void;
  /** Told once: the run cannot go on with its model. */
  onFailure: (failure: AgentFailure) => void;
};

/** What one run of an agent with a model works with. `secrets` must not stand in anything that is stored. */
type Equipment = {
  means: Means;
  secrets: string[];
  /** The agent hears with the next answer of its model that a limit is near. */
  warn: (limit: string) => void;
  close: () => Promise<void>;
};

export type Host = ReturnType<typeof createHost>;

/** The service's side of agents with a model: opens for each run its way to the model, its way out and its folder, and closes them. */
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

  async function openSandbox({ task, allow, onEvent }: Run) {
    sandbox ??= detectSandbox();
    const { level, detail } = await sandbox;
    browser ??= sandbox.then(detectBrowser);
    const found = await browser;
    const missing = { missing: "missing" in found ? found.missing : detail };
    if (level === "none") return { sandbox: { missing: detail }, browser: missing, secrets: [], close: async () => {} };
    egress ??= listen();
    const way = await egress;
    const workspace = makeWorkspace(way.home);
    const terms = {
      ...addressesOf(task),
      urlMap: task.urlMap,
      allowPrivate: allow,
      onEvent: (event: AgentEvent) => onEvent(event, "egress"),
    };
    const bytesOut = task.limits.maxBytesOut;
    const session = way.egress.open({ ...terms, limits: { requests: task.limits.maxRequests, bytesOut } });
    // What a page asks for, by the dozen, is not what the agent asks for.
    const ofPages = "program" in found ? way.egress.open({ ...terms, limits: { bytesOut }, purpose: "page" }) : null;
    const wayOf = ({ token }: { token: string }) => ({ path: way.egress.socketPath, token });
    return {
      sandbox: { workspace, egress: wayOf(session) },
      browser: "program" in found && ofPages ? { program: found.program, egress: wayOf(ofPages) } : missing,
      secrets: [session, ...(ofPages ? [ofPages] : [])].map(({ token }) => token),
      async close() {
        session.close();
        ofPages?.close();
        await remove(workspace);
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
        // A model that says nothing is told of before the agent is taken for idle.
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
    /** Removes what a service left when it was killed. Call it under the data lock. */
    async sweep(): Promise<void> {
      if (folder) await remove(folder);
      await sweepSockets(now());
    },
    /** Call it when no run is under way. */
    async close(): Promise<void> {
      const way = await egress;
      egress = undefined;
      await way?.egress.close();
      if (way) await remove(way.home);
    },
  };
}

/** Beside the service's own work: a folder may hold ten thousand files. What commands left may be closed to its own owner. */
async function remove(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch {
    await Bun.spawn(["chmod", "-R", "u+rwX", "--", path]).exited;
    await Bun.spawn(["rm", "-rf", "--", path]).exited;
  }
}
