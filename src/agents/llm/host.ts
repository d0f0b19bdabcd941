import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { AllowRule } from "../../config.ts";
import { type AgentEvent, AgentFailure, type EventSource, type Means, type Task } from "../agent.ts";
import { type Egress, startEgress } from "../egress/egress.ts";
import type { createGateway } from "../gateway/gateway.ts";
import type { ModelAccess } from "../gateway/prices.ts";
import { detectSandbox, type Sandbox } from "../sandbox/sandbox.ts";
import { reachOf } from "./web.ts";

type Options = {
  now: () => number;
  /** Where each run gets a folder to work in; null: among the temporary files. */
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
export function createHost({ now, folder, operatorHosts }: Options) {
  let gateway: Promise<ReturnType<typeof createGateway>> | undefined;
  /** Made for the first run that needs it: what it knows of prices would make every start slower. */
  const openGateway = () =>
    (gateway ??= import("../gateway/gateway.ts").then((module) => module.createGateway({ now })));
  let sandbox: Promise<Sandbox> | undefined;
  let egress: Promise<{ egress: Egress; home: string }> | undefined;

  async function listen() {
    // Not the data folder: the path of a socket is at most 107 characters long.
    const home = mkdtempSync(join(tmpdir(), "evald-egress-"));
    return { egress: await startEgress({ socketPath: join(home, "socket"), operatorHosts, now }), home };
  }

  function makeWorkspace(): string {
    if (folder) mkdirSync(folder, { recursive: true, mode: 0o700 });
    return mkdtempSync(resolve(folder ?? tmpdir(), folder ? "run-" : "evald-run-"));
  }

  async function openSandbox({ task, allow, onEvent }: Run) {
    sandbox ??= detectSandbox();
    const { level, detail } = await sandbox;
    if (level === "none") return { sandbox: { missing: detail }, secrets: [], close: () => {} };
    egress ??= listen();
    const way = await egress;
    const workspace = makeWorkspace();
    const session = way.egress.open({
      ...reachOf(task),
      urlMap: task.urlMap,
      allowPrivate: allow,
      limits: { requests: task.limits.maxRequests, bytesOut: task.limits.maxBytesOut },
      onEvent: (event) => onEvent(event, "egress"),
    });
    return {
      sandbox: { workspace, egress: { path: way.egress.socketPath, token: session.token } },
      secrets: [session.token],
      close() {
        session.close();
        remove(workspace);
      },
    };
  }

  return {
    async equip(run: Run): Promise<Equipment> {
      const { model, mustHavePrice, onEvent, onFailure } = run;
      const place = await openSandbox(run).catch((error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error);
        throw new AgentFailure("infrastructure", `no place to work in could be made: ${reason}`, { retryable: true });
      });
      const gateway = await openGateway();
      const session = gateway.openSession({
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
        means: { model: { id, provider, name, socketPath, token }, sandbox: place.sandbox, operatorHosts },
        secrets: [token, ...place.secrets],
        warn: session.warn,
        async close() {
          place.close();
          await session.close();
        },
      };
    },
    /** Removes the folders that a service left when it was killed. Call it under the data lock. */
    sweep: () => folder && remove(folder),
    /** Call it when no run is under way. */
    async close(): Promise<void> {
      await (await gateway)?.close();
      const way = await egress;
      egress = undefined;
      await way?.egress.close();
      if (way) rmSync(way.home, { recursive: true, force: true });
    },
  };
}

/** What commands left may be closed to its own owner. */
function remove(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    Bun.spawnSync(["chmod", "-R", "u+rwX", "--", path]);
    Bun.spawnSync(["rm", "-rf", "--", path]);
  }
}
