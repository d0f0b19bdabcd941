import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Logger } from "pino";
import {
  type Agent,
  type AgentEvent,
  AgentFailure,
  type AgentResources,
  isDiskFull,
  runInfrastructureStep,
} from "../agents/agent.ts";
import { hostUrlsOfSecrets, secretNamesOf } from "../agents/check-secrets.ts";
import { type Egress, type EgressRun, type EgressSession, startEgress } from "../agents/egress/egress.ts";
import { tokenOf } from "../agents/gateway/gateway.ts";
import { type BrowserStatus, detectBrowser } from "../agents/sandbox/chromium.ts";
import { detectSandbox, type Sandbox } from "../agents/sandbox/sandbox.ts";
import { type OpenSite, openSite } from "../agents/site/site.ts";
import { createTemporaryFolder, removeUnusedSockets } from "../agents/sockets.ts";
import { hostUrlsOf, mcpUrlsOf } from "../agents/task.ts";
import { serveOwnSocket } from "../net/forwarder.ts";
import { maxRedirects } from "../net/guarded.ts";
import { once } from "../once.ts";
import type { Executor, SessionHooks, SessionOrder } from "./executor.ts";

/** How many bytes a connection sends in addition to the bodies of requests: a TLS handshake and headers. */
const headBytes = 64 * 1024;

/** The network proxy of this machine, and the folder with its socket. */
type Proxy = { egress: Egress; folder: string };

/** The folders of a run: its workspace, and one for everything else that it needs, such as sockets and archives. */
type RunFolders = { workspace: string; storage: string };

type Machine = ReturnType<typeof openMachine>;

/** What this machine offers to runs, opened when one of them first needs it. */
function openMachine(
  agents: Record<string, Agent>,
  now: () => number,
  folder: string | null,
  operatorHosts: readonly string[],
) {
  const findSandbox = once(detectSandbox, ({ level }) => level !== "none");
  let proxy: Proxy | null = null;
  return {
    agents,
    now,
    folder,
    operatorHosts,
    findSandbox,
    findBrowser: once(
      async () => detectBrowser(await findSandbox()),
      (browser) => !("missing" in browser),
    ),
    openProxy: once(async () => {
      const startedProxy = await startProxy(operatorHosts);
      proxy = startedProxy;
      return startedProxy;
    }),
    /** null: no run has needed it. */
    findProxy: () => proxy,
    /**
     * Folders for the next runs. Processes that wait for runs already have access to them. The last folders most likely belong to the next process.
     */
    nextRunFolders: [] as RunFolders[],
  };
}

/** Logs why this machine has no sandbox, and what to do about it. */
export function warnWithoutSandbox(log: Logger, sandbox: Sandbox): void {
  if (sandbox.level !== "none") return;
  log.warn({ problem: sandbox.problem, detail: sandbox.detail }, "no sandbox: agents can't run commands");
}

/**
 * Runs agents on this machine. For each run of an agent with a model, it opens the network proxy and the workspace, and closes them at the end.
 * `folder`: where each run gets its workspace; null: next to the socket of its proxy, in the temporary folder.
 */
export function createLocalExecutor(...options: Parameters<typeof openMachine>) {
  const machine = openMachine(...options);
  return {
    run: (order: SessionOrder, hooks: SessionHooks) => runSession(machine, order, hooks),
    /** The path of the network proxy's socket. Opens the proxy if it isn't open. */
    openSocket: async () => (await machine.openProxy()).egress.socketPath,
    /** The folders of one of the next runs with a sandbox. */
    async openFolders(): Promise<string[]> {
      const folders = await makeFolders(machine);
      machine.nextRunFolders.push(folders);
      return [folders.workspace, folders.storage];
    },
    /** The isolation that this machine offers. */
    findSandbox: machine.findSandbox,
    /** Detects the browser in advance, so that the first run doesn't wait for it. If this fails, that run reports the error. */
    prepare: (): void => void machine.findBrowser().catch(() => {}),
    /** Call it when no run is active. */
    close: () => closeMachine(machine),
  } satisfies Executor & Record<string, unknown>;
}

/** Removes what a killed service left behind. Requires the data lock. */
export async function sweepWorkspaces(folder: string | null): Promise<void> {
  // The folder itself may be mounted in the sandbox of a process that waits for a run.
  if (folder && existsSync(folder)) await Promise.all(readdirSync(folder).map((name) => remove(join(folder, name))));
  await removeUnusedSockets();
}

async function startProxy(operatorHosts: readonly string[]): Promise<Proxy> {
  const { folder, socketPath } = createTemporaryFolder("egress");
  try {
    return {
      egress: await startEgress({ socketPath, operatorHosts, now: () => Math.round(performance.now()) }),
      folder,
    };
  } catch (error) {
    await remove(folder);
    throw error;
  }
}

async function makeFolders({ folder, openProxy }: Machine): Promise<RunFolders> {
  const proxyFolder = (await openProxy()).folder;
  if (folder) mkdirSync(folder, { recursive: true, mode: 0o700 });
  return {
    workspace: mkdtempSync(resolve(folder ?? proxyFolder, "run-")),
    storage: mkdtempSync(resolve(proxyFolder, "agent-")),
  };
}

async function closeMachine({ nextRunFolders, findProxy }: Machine): Promise<void> {
  await Promise.all(nextRunFolders.splice(0).flatMap(({ workspace, storage }) => [remove(workspace), remove(storage)]));
  const proxy = findProxy();
  await proxy?.egress.close();
  if (proxy) await remove(proxy.folder);
}

/** Runs an agent on this machine. Opens everything that the run needs, and closes it at the end. Yields the events of the session. */
async function* runSession(machine: Machine, order: SessionOrder, hooks: SessionHooks): AsyncGenerator<AgentEvent> {
  const { agents, now, operatorHosts } = machine;
  const { model, allow, labels } = order;
  const agent = agents[order.agent];
  if (!agent) throw new AgentFailure("agent_not_available", `the agent ${order.agent} does not exist here`);
  if (labels.length > 0)
    throw new AgentFailure(
      "no_worker",
      `the prompt needs a worker with the labels ${labels.join(", ")}, but this server runs agents itself; remove its worker labels, or set EVALD_REDIS_URL and start a worker`,
      { retryable: false, subject: order.agent },
    );
  const site = await openTaskSite(order);
  if (site) hooks.onEgress({ type: "milestone", name: "site_served", detail: site.served });
  const task = site ? { ...order.task, site: { ...order.task.site!, form: site.served.form } } : order.task;
  let opened: OpenedResources | null = null;
  try {
    opened = model && (await openResources(machine, model, order, site, hooks));
    const resources = opened && { ...opened.resources, operatorHosts };
    hooks.onStart(agent.describe().version);
    const { checkSecrets } = order;
    const context = { signal: hooks.signal, now, startedAt: now(), allow, resources, checkSecrets };
    yield* agent.run(task, { ...context, openEgress: () => openTunnels(machine, order, site, hooks) });
  } finally {
    hooks.onEnd();
    await opened?.close();
    await site?.close();
  }
}

/** The site that a run reads in place of the live docs; null if there is none. Throws AgentFailure. */
const openTaskSite = async ({ task, site }: SessionOrder): Promise<OpenSite | null> =>
  task.site && site
    ? await runInfrastructureStep("workspace_failed", "the site could not be unpacked", () =>
        openSite(site, task.site!),
      )
    : null;

/** Tunnels through which the agent's own guard sends its requests. The guard reports them. */
async function openTunnels(
  { openProxy }: Machine,
  { task, allow }: SessionOrder,
  site: OpenSite | null,
  { hide, onEgress }: SessionHooks,
) {
  const { wallClockMs, maxRequests, maxBytesOut } = task.limits;
  const { egress } = await openProxy();
  const connections = (1 + maxRedirects) * maxRequests;
  const session = egress.open({
    anyHost: true,
    urls: [],
    docsUrls: [],
    urlMap: {},
    site,
    allowPrivate: allow,
    // An agent that keeps its limits never reaches these.
    limits: {
      requests: connections,
      concurrent: connections,
      requestMs: wallClockMs,
      bytesOut: maxBytesOut + connections * headBytes,
    },
    onEvent: (event) => event.type === "limit" && onEgress(event),
  });
  hide([session.token]);
  return { ...session, path: egress.socketPath };
}

type Model = AgentResources["model"];

/** The model, the sandbox and the browser that were opened for a run. */
type OpenedResources = { resources: Omit<AgentResources, "operatorHosts">; close: () => Promise<void> };

async function openResources(
  machine: Machine,
  model: Model,
  order: SessionOrder,
  site: OpenSite | null,
  hooks: SessionHooks,
): Promise<OpenedResources> {
  try {
    const { level, detail } = await machine.findSandbox();
    const browser = await machine.findBrowser();
    if (level !== "none") return await openSandbox(machine, browser, { ...order, model }, site, hooks);
    const { folder, socketPath } = createTemporaryFolder("gateway");
    const gateway = await openGatewaySocket(model, socketPath);
    const browserProblem = "missing" in browser ? browser.missing : detail;
    return {
      resources: { model: gateway.model, sandbox: { missing: detail }, browser: { missing: browserProblem } },
      async close() {
        await gateway.close();
        await remove(folder);
      },
    };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new AgentFailure(
      isDiskFull(error) ? "disk_full" : "workspace_failed",
      `the workspace could not be created: ${reason}`,
      { retryable: true },
    );
  }
}

/** Opens the run's own way to the gateway. Only the run's own token works there. */
async function openGatewaySocket(model: Model, socketPath: string) {
  const { close } = await serveOwnSocket(socketPath, model.socketPath, (headers) => tokenOf(headers) === model.token);
  // The process of an agent may belong to another user. All other users are kept out by the folder around the socket.
  chmodSync(socketPath, 0o666);
  return { model: { ...model, socketPath }, close };
}

const isRequestTo = (hosts: readonly string[], event: AgentEvent): boolean =>
  event.type === "http" && hosts.includes(new URL(event.url).hostname);

/**
 * The hosts of an agent's vendor: the hosts that the agent reaches, and the hosts whose requests are not reported because the task isn't about them.
 * `runUrls`: the URLs that the task is about.
 */
function vendorHostsOf({ agents }: Machine, { agent, login }: SessionOrder, runUrls: readonly string[]) {
  const description = agents[agent]?.describe();
  const loginHosts = login === null ? [] : (description?.login?.hosts ?? []);
  const reached = [...(description?.hosts ?? []), ...loginHosts];
  const runHosts = runUrls.flatMap((url) => URL.parse(url)?.hostname ?? []);
  const unreported = [...reached, ...(description?.blockedHosts ?? [])].filter((host) => !runHosts.includes(host));
  return { reached, unreported };
}

async function openSandbox(
  machine: Machine,
  browser: BrowserStatus,
  order: SessionOrder & { model: Model },
  site: OpenSite | null,
  { hide, onEgress }: SessionHooks,
): Promise<OpenedResources> {
  const { task, archive, skillsArchive, login, allow, model, checkSecrets } = order;
  const { egress } = await machine.openProxy();
  const { workspace, storage } = machine.nextRunFolders.pop() ?? (await makeFolders(machine));
  const commonRun = {
    ...hostUrlsOf(task),
    mcpUrls: mcpUrlsOf(task.workspace),
    urlMap: task.urlMap,
    edits: task.edits,
    site,
    allowPrivate: allow,
    onEvent: onEgress,
  };
  const vendorHosts = vendorHostsOf(machine, order, [...commonRun.docsUrls, ...commonRun.urls]);
  const { maxRequests: requests, maxBytesOut: bytesOut } = task.limits;
  const { repository } = task.workspace ?? {};
  const setupUrls = [...commonRun.urls, ...(repository ? [repository.url] : []), ...hostUrlsOfSecrets(checkSecrets)];
  const needsSetup = task.workspace !== undefined || secretNamesOf(task.declaredChecks).length > 0;
  const sessions: EgressSession[] = [];
  const open = (run: EgressRun) => {
    const session = egress.open(run);
    sessions.push(session);
    hide([session.token]);
    return { path: egress.socketPath, token: session.token };
  };
  const agentRun: EgressRun = {
    ...commonRun,
    urls: [...commonRun.urls, ...vendorHosts.reached.map((host) => `https://${host}/`)],
    limits: { requests, bytesOut },
    // What an agent exchanges with its vendor doesn't belong to its session.
    onEvent(event) {
      if (!isRequestTo(vendorHosts.unreported, event)) onEgress(event);
    },
  };
  // Requests of the setup and of checks don't come from the agent.
  const setupRun: EgressRun = { ...commonRun, urls: setupUrls, onEvent: () => {} };
  // Pages send dozens of requests that don't come from the agent, so they are counted separately.
  const pageRun: EgressRun = { ...commonRun, limits: { bytesOut }, purpose: "page" };
  const gateway = await openGatewaySocket(model, join(storage, "gateway"));
  return {
    resources: {
      model: gateway.model,
      sandbox: {
        workspace: { path: workspace, holder: null },
        folder: storage,
        egress: open(agentRun),
        archive: await storeFile(join(storage, "archive.tar.gz"), archive),
        skillsArchive: await storeFile(join(storage, "skills.tar.gz"), skillsArchive),
        login: await storeFile(join(storage, "login"), login),
        setupEgress: needsSetup ? open(setupRun) : null,
      },
      browser: "missing" in browser ? browser : { program: browser.program, egress: open(pageRun) },
    },
    async close() {
      for (const each of sessions) each.close();
      await gateway.close();
      await Promise.all([remove(workspace), remove(storage)]);
    },
  };
}

/** Returns the path; null if there is no file. */
async function storeFile(path: string, data: Uint8Array | null): Promise<string | null> {
  if (data === null) return null;
  await Bun.write(path, data);
  // The process of an agent may belong to another user. All other users are kept out by the folder around the file.
  chmodSync(path, 0o644);
  return path;
}

/** Deletes in another thread, because a folder may contain thousands of files. Commands may have left folders without permissions. */
async function remove(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch {
    await Bun.spawn(["chmod", "-R", "u+rwX", "--", path]).exited;
    await Bun.spawn(["rm", "-rf", "--", path]).exited;
  }
}
