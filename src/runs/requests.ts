import { and, asc, desc, eq, gt } from "drizzle-orm";
import { mcpUrlsOf, type WorkspaceSetup } from "../agents/task.ts";
import { hasArchive } from "../archives/archives.ts";
import { changesOf, recordAudit } from "../audit/entries.ts";
import type { Context, OrgId } from "../context.ts";
import type { Tx } from "../db/open.ts";
import { insertStatement } from "../db/rows.ts";
import type { ArmChanges } from "../db/tables/experiments.ts";
import { evalRequests, type RunTask, runs, type Trigger } from "../db/tables/runs.ts";
import { conflict, invalidField, notFound } from "../errors.ts";
import { callerOf, type Requester, toRequester } from "../http/caller.ts";
import { enqueue } from "../jobs/queue.ts";
import { type Edits, parseEdits } from "../net/edits.ts";
import { compileMapping, createMapping, type Mapping, parseUrlMap } from "../net/mapping.ts";
import { agentsForRun, type PromptRow } from "../prompts/prompt-check.ts";
import { getPromptRow, nameOfPrompt } from "../prompts/prompts.ts";
import { startUrls } from "../prompts/start-urls.ts";
import { fillTemplate, selectArgs } from "../prompts/template.ts";
import { checkWorkspace } from "../prompts/workspace-check.ts";
import { getProvider } from "../providers/providers.ts";
import { checkBudget } from "./budgets.ts";
import { hashOf } from "./context-digest.ts";
import { stopEndedRuns, supersedeRuns } from "./endings.ts";
import { resolveSections } from "./hidden-sections.ts";
import { holdIfPaused } from "./pauses.ts";
import { getRunRow, type RunRow } from "./run-row.ts";
import { type RequestedSites, requestedSitesOf, resolveSites } from "./sites.ts";

const searchesLiveWeb =
  "cannot be combined with the agent option webSearch, because the provider of the model searches the live web";
const idempotencyMs = 24 * 3600_000;
/** Attempts per run. Only a crash of the agent uses one. */
export const maxAttempts = 3;

/** How an evaluation was requested, and by whom. Without a requester, it was a schedule or the operator. */
export type EvalSource = { trigger: Trigger; requester?: Requester };

export type EvalRequestInput = EvalSource & {
  urlMap: Record<string, string>;
  /** Docs sites that are read in place of the live docs. */
  sites?: RequestedSites;
  /** What is changed in the docs before the agent gets them. Without edits, it is an ordinary run. */
  edits?: Edits;
  /** The edits before sections were resolved. They replace `edits` in the idempotency digest. */
  requestedEdits?: Edits;
  templateArgs?: Record<string, string>;
  /** Default 1; null: the prompt's runsPerEval. */
  runs?: number | null;
  idempotencyKey?: string;
  /** The run to retry. It is part of the idempotency digest. */
  rerunOf?: string;
  /** Further parameters of a gate. They are part of the idempotency digest. */
  gate?: object;
  /** Default false. A function decides for requests without this parameter. It is not part of the idempotency digest. */
  supersede?: boolean | ((prompt: { supersedesByDefault: boolean }) => boolean);
  /** The agent and model in place of the prompt's. */
  agent?: string;
  model?: string;
  /** What an arm of an experiment changes about the prompt. */
  changes?: PromptChanges;
  /** Whether the prompt may be archived. Default: false. */
  mayBeArchived?: boolean;
};

/** `without`: parts of the prompt's workspace to leave out. `workspace`: parts that replace the prompt's. */
type PromptChanges = Pick<ArmChanges, "providerId" | "workspace" | "without">;

/** `superseded`: the IDs of the runs that the evaluation ended. */
export type AcceptedEval = { evalRequestId: string; runIds: string[]; superseded: string[] };

const pendingFields = {
  status: "pending",
  agentVersion: null,
  contextDigest: null,
  attempt: 0,
  failureCause: null,
  failureCode: null,
  failureSubject: null,
  failureDetail: null,
  startedAt: null,
  completedAt: null,
  reservedUsd: null,
  spentUsd: 0,
  waitingFor: null,
} as const;

// They are prepared for the database's only connection, so within a transaction they are part of it.
const insertEvalRequest = insertStatement(evalRequests);
const insertRun = insertStatement(runs);

/**
 * Accepts an evaluation of a prompt within a transaction: its evaluation, runs and jobs become visible together. After the commit, pass
 * `superseded` to `stopEndedRuns` and emit `jobQueued`.
 * Throws not_found, conflict (archived, monthly budget spent, or idempotency key reused), missing_template_vars, bad_request (urlMap,
 * edits, templateArgs, agent, model).
 */
export function acceptEval(ctx: Context, tx: Tx, org: OrgId, promptId: string, input: EvalRequestInput): AcceptedEval {
  const { changes, idempotencyKey, supersede = false } = input;
  const prompt = changedPrompt(ctx, org, getPromptRow(ctx, org, promptId), changes);
  const idempotency = idempotencyKey ? { key: idempotencyKey, hash: hashOfRequest(prompt.id, input) } : null;
  const earlierEval = idempotency && findEarlierEval(ctx, tx, org, idempotency);
  if (earlierEval) return earlierEval;
  if (prompt.status === "archived" && !input.mayBeArchived)
    throw conflict(
      `The prompt is archived. Unarchive it with PATCH /api/v1/prompts/${promptId} and {"status": "active"}.`,
    );
  const { site, urlMap } = resolveSites(ctx, tx, org, input.sites ?? {}, input.urlMap);
  const parsedUrlMap = parseUrlMap(urlMap);
  const edits = parseEdits(input.edits);
  const args = selectArgs(prompt.templateVars, input.templateArgs ?? {});
  const task = toTask(ctx, org, prompt, parsedUrlMap, args ?? {});
  const agents = agentsForRun(ctx, org, prompt, { agent: input.agent, model: input.model });
  if (edits && agents.some(({ options }) => options?.webSearch)) throw invalidField("edits", searchesLiveWeb);
  if (agents.some(({ model }) => model !== null)) checkBudget(ctx, org, prompt.id);

  const createdAt = ctx.now();
  const evalRequestId = ctx.newId(createdAt);
  const repeats = input.runs === null ? (prompt.runsPerEval ?? 1) : (input.runs ?? 1);
  const agentRuns = interleave(agents, repeats).map((agent) => ({ id: ctx.newId(createdAt), ...agent }));
  const runIds = agentRuns.map(({ id }) => id);
  // A changed prompt sets runs apart from ordinary ones, just as edited docs do.
  const editsDigest = edits || changes ? hashOf({ ...edits, ...changes }) : null;
  const shouldSupersede = typeof supersede === "function" ? supersede(prompt) : supersede;
  const superseded = shouldSupersede
    ? supersedeRuns(ctx, tx, org, { promptId: prompt.id, urlMap, editsDigest }, runIds[0] as string)
    : [];
  recordEval(ctx, org, prompt, { id: evalRequestId, createdAt, runs: runIds.length }, input);
  const host = firstHost(task.startUrls, compileMapping(parsedUrlMap));
  for (const { id, agentIndex, agent, model, options } of agentRuns) {
    // If the prompt has several agents, a retry of the run uses only the run's own agent.
    const chosen = agents.length > 1 ? { agent, model: model ?? undefined } : chosenAgentOf(input);
    insertPending(ctx, tx, host, {
      id,
      agentIndex,
      orgId: org,
      promptId: prompt.id,
      evalRequestId,
      urlMap,
      templateArgs: args,
      editsDigest,
      task: {
        ...task,
        ...(site && { site }),
        ...(edits && { edits }),
        ...(options && { agentOptions: options }),
        ...(chosen && { chosen }),
      },
      agent,
      model,
      createdAt,
      idempotencyKey: idempotency?.key ?? null,
      idempotencyHash: idempotency?.hash ?? null,
    });
  }
  return { evalRequestId, runIds, superseded };
}

/** Inserts an evaluation and its entry in the audit log. `runs`: the number of its runs. */
function recordEval(
  ctx: Context,
  org: OrgId,
  prompt: PromptRow,
  { id, createdAt, runs }: { id: string; createdAt: number; runs: number },
  source: EvalSource,
): void {
  const { trigger, requester: { personId = null, keyId = null } = {} } = source;
  const promptId = prompt.id;
  insertEvalRequest(ctx.db)({ id, orgId: org, promptId, trigger, personId, keyId, createdAt, status: "pending" });
  const changes = changesOf({}, { promptId, runs, trigger });
  recordAudit(ctx, org, "evaluation.requested", { id, name: nameOfPrompt(prompt) }, changes);
}

/** The prompt with the changes of an experiment's arm. Throws bad_request, which names the field. */
function changedPrompt(
  ctx: Context,
  org: OrgId,
  prompt: PromptRow,
  { providerId, workspace, without = [] }: PromptChanges = {},
): PromptRow {
  const ownParts = Object.entries(prompt.workspace ?? {}).filter(([part]) => !without.some((each) => each === part));
  const setup: WorkspaceSetup = { ...Object.fromEntries(ownParts), ...workspace };
  if (workspace) checkWorkspace(setup, (id) => hasArchive(ctx, org, id));
  return {
    ...prompt,
    workspace: Object.keys(setup).length === 0 ? null : setup,
    // The prompt's own URLs belong to its own provider.
    ...(providerId !== undefined && { targetProviderId: providerId, additionalUrls: null }),
  };
}

/** The agent that a request names in place of the prompt's agent. A retry and further runs use it too. */
const chosenAgentOf = ({ agent, model }: EvalRequestInput): RunTask["chosen"] =>
  (agent ?? model) ? { agent, model } : undefined;

/** The task of the agents, by the prompt as it is now. */
function toTask(
  ctx: Context,
  org: OrgId,
  prompt: PromptRow,
  parsedUrlMap: ReturnType<typeof parseUrlMap>,
  args: Record<string, string>,
): RunTask {
  const fill = (text: string) => fillTemplate(text, args);
  const text = fill(prompt.text);
  const provider = prompt.targetProviderId === null ? null : getProvider(ctx, org, prompt.targetProviderId);
  const mcpUrls = mcpUrlsOf(prompt.workspace ?? undefined);
  return {
    title: prompt.title,
    text,
    endGoal: prompt.endGoal === null ? null : fill(prompt.endGoal),
    ...(prompt.basis && { basis: { url: prompt.basis.url, quote: prompt.basis.quote } }),
    ...(prompt.wordings && { wordings: prompt.wordings.map(fill) }),
    startUrls: startUrls({ mapped: parsedUrlMap, provider, additionalUrls: prompt.additionalUrls, text, mcpUrls }),
    productUrl: provider?.productUrl ?? null,
    declaredChecks: prompt.declaredChecks ?? [],
    ...(prompt.workspace && { workspace: prompt.workspace }),
    reviewBeforePublishing: prompt.reviewBeforePublishing,
    limits: prompt.limits,
    ...(prompt.workerLabels.length > 0 && { workerLabels: prompt.workerLabels }),
  };
}

/** The digest of the request and not of its result. If the prompt is edited in between, a retry is still the same request. */
function hashOfRequest(promptId: string, input: EvalRequestInput): string {
  const { requester: _, requestedEdits, templateArgs = {}, ...rest } = input;
  const hasArgs = Object.keys(templateArgs).length > 0;
  const edits = requestedEdits ?? input.edits;
  return hashOf({ promptId, input: { ...rest, edits, templateArgs: hasArgs ? templateArgs : undefined } });
}

/**
 * Adds a run for each agent of an evaluation within a transaction; emit `jobQueued` afterwards. `model`: the model of a single agent. Several agents
 * keep their own models. Returns the IDs of the runs. Throws not_found.
 */
export function addRuns(ctx: Context, tx: Tx, org: OrgId, evalRequestId: string, model: string | null): string[] {
  const whereOfEvaluation = and(eq(runs.orgId, org), eq(runs.evalRequestId, evalRequestId));
  const rows = tx.select().from(runs).where(whereOfEvaluation).orderBy(asc(runs.id)).all();
  if (rows.length === 0) throw notFound(`No evaluation has the ID ${evalRequestId}.`);
  // One run of each agent.
  const firstRuns = rows.filter((row, i) => i === rows.findIndex(({ agentIndex }) => agentIndex === row.agentIndex));
  return firstRuns.map((first) => {
    const id = ctx.newId(ctx.now());
    insertPending(ctx, tx, firstHost(first.task.startUrls, createMapping(first.urlMap)), {
      ...first,
      id,
      createdAt: ctx.now(),
      model: firstRuns.length > 1 ? (first.task.chosen?.model ?? null) : model,
      idempotencyKey: null,
      idempotencyHash: null,
    });
    return id;
  });
}

/**
 * Accepts an evaluation of a prompt and resolves once it is on disk. Throws what `acceptEval` throws, and bad_request for a hidden section that its
 * page doesn't have.
 */
export async function requestEval(
  ctx: Context,
  org: OrgId,
  promptId: string,
  input: EvalRequestInput,
): Promise<AcceptedEval> {
  const { edits: requestedEdits, urlMap } = input;
  const edits = requestedEdits && (await resolveSections(ctx, requestedEdits, urlMap, "edits"));
  const accepted = await ctx.commit((tx) => acceptEval(ctx, tx, org, promptId, { ...input, edits, requestedEdits }));
  if (accepted.superseded.length > 0) stopEndedRuns(ctx, accepted.superseded);
  ctx.signals.jobQueued.emit();
  return accepted;
}

/** Retries a run: the prompt in its current version, with the same urlMap, edits and templateArgs. Throws like `requestEval`. */
export function requestRerun(
  ctx: Context,
  org: OrgId,
  runId: string,
  by: Pick<EvalRequestInput, keyof EvalSource | "idempotencyKey">,
): Promise<AcceptedEval> {
  const { id: rerunOf, promptId, urlMap, templateArgs, task } = getRunRow(ctx, org, runId);
  return requestEval(ctx, org, promptId, {
    ...task.chosen,
    urlMap,
    sites: requestedSitesOf(task),
    edits: task.edits,
    templateArgs: templateArgs ?? undefined,
    ...by,
    rerunOf,
  });
}

/** Inserts a run with its job. `host`: the first host that the run requests. */
function insertPending(ctx: Context, tx: Tx, host: string, run: Omit<RunRow, keyof typeof pendingFields>): void {
  insertRun(ctx.db)({ ...run, ...pendingFields });
  enqueue(ctx, tx, { pool: "runs", kind: "run", subject: run.id, orgId: run.orgId, host, maxAttempts });
  holdIfPaused(ctx, tx, run);
}

/** Repeats the agents `times` times. They alternate, so that none gets a head start. */
const interleave = <T extends object>(agents: T[], times: number): (T & { agentIndex: number })[] =>
  Array.from({ length: times }, () => agents.map((agent, agentIndex) => ({ ...agent, agentIndex }))).flat();

type Idempotency = { key: string; hash: string };

/** The evaluation that was requested with this idempotency key in the last 24 hours. Throws conflict if another request used the key. */
function findEarlierEval(ctx: Context, tx: Tx, org: OrgId, { key, hash }: Idempotency): AcceptedEval | undefined {
  const since = ctx.now() - idempotencyMs;
  const run = tx
    .select({ evalRequestId: runs.evalRequestId, hash: runs.idempotencyHash })
    .from(runs)
    .where(and(eq(runs.orgId, org), eq(runs.idempotencyKey, key), gt(runs.createdAt, since)))
    .orderBy(desc(runs.id))
    .get();
  if (!run) return undefined;
  if (run.hash !== hash)
    throw conflict("This Idempotency-Key was used for a different request in the last 24 hours. Use a new key.");
  const { evalRequestId } = run;
  const rows = tx
    .select({ id: runs.id })
    .from(runs)
    .where(and(eq(runs.orgId, org), eq(runs.evalRequestId, evalRequestId)))
    .orderBy(asc(runs.id))
    .all();
  return { evalRequestId, runIds: rows.map(({ id }) => id), superseded: [] };
}

/** The host that a run requests first, after urlMap, for the per-host limit. Empty if there is none. */
function firstHost([first]: string[], { toHost }: Mapping): string {
  return first === undefined ? "" : toHost(new URL(first));
}

/** How a REST request was made, and with which API key. The command line names itself as its user agent. */
export function sourceOf(request: Request): EvalSource {
  const caller = callerOf(request);
  const isCli = request.headers.get("user-agent")?.startsWith("evald-cli/");
  const trigger = isCli ? "cli" : "api";
  return { requester: toRequester(caller), trigger: caller.trustId === null ? trigger : "ci" };
}
