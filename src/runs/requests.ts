import { and, asc, desc, eq, gt } from "drizzle-orm";
import { mcpUrlsOf } from "../agents/task.ts";
import type { Context, OrgId } from "../context.ts";
import type { Commit } from "../db/commit.ts";
import type { Tx } from "../db/open.ts";
import { preparedInsert } from "../db/rows.ts";
import { evalRequests, type RunTask, runs, type Trigger } from "../db/tables/runs.ts";
import { conflict, notFound } from "../errors.ts";
import { enqueue } from "../jobs/queue.ts";
import { compileMapping, createMapping, type Mapping, parseUrlMap } from "../net/mapping.ts";
import type { Prompts } from "../prompts/prompts.ts";
import { startUrls } from "../prompts/starts.ts";
import { argsFor, fillTemplate } from "../prompts/template.ts";
import { getProvider } from "../providers/providers.ts";
import { hashOf } from "./context-digest.ts";
import type { Endings } from "./endings.ts";
import { getRunRow } from "./run-row.ts";
import { checkBudget } from "./spending.ts";

const idempotencyMs = 24 * 3600_000;
/** Attempts per run. Only a crash of the agent uses one. */
const maxAttempts = 3;

export type EvalRequestInput = {
  urlMap: Record<string, string>;
  templateArgs?: Record<string, string>;
  /** Default 1; null: the prompt's runsPerEval. */
  runs?: number | null;
  trigger: Trigger;
  idempotencyKey?: string;
  /** The run to retry; part of the idempotency digest. */
  rerunOf?: string;
  /** Further parameters of a gate; part of the idempotency digest. */
  gate?: object;
  /** Default false. A function decides for requests that don't say so; it is not part of the idempotency digest. */
  supersede?: boolean | ((prompt: { supersedesByDefault: boolean }) => boolean);
  /** In place of the prompt's. */
  agent?: string;
  model?: string;
};

/** A run as requested. */
type Given =
  | "id"
  | "orgId"
  | "promptId"
  | "evalRequestId"
  | "urlMap"
  | "templateArgs"
  | "task"
  | "agent"
  | "model"
  | "agentIndex"
  | "createdAt"
  | "idempotencyKey"
  | "idempotencyHash";
/** `superseded`: IDs of the runs that it ended. */
type Accepted = { evalRequestId: string; runIds: string[]; superseded: string[] };

const notStarted = {
  status: "pending",
  agentVersion: null,
  contextDigest: null,
  attempt: 0,
  failureCause: null,
  failureDetail: null,
  startedAt: null,
  completedAt: null,
  reservedUsd: null,
  waitingFor: null,
} as const;

export type Requests = ReturnType<typeof createRequests>;

type Parts = {
  prompts: Prompts;
  endings: Endings;
  commit: Commit;
};

export function createRequests(ctx: Context, { prompts: ofPrompts, endings, commit }: Parts) {
  const { db, now, newId, signals } = ctx;
  const insertEvalRequest = preparedInsert(db, evalRequests);
  const insertRun = preparedInsert(db, runs);

  /**
   * Accepts an evaluation of a prompt within a transaction: its evaluation, runs and jobs become visible together.
   * Throws not_found, conflict (archived, monthly budget spent, or idempotency key reused), missing_template_vars, bad_request (urlMap,
   * templateArgs, agent, model).
   */
  function accept(tx: Tx, org: OrgId, promptId: string, input: EvalRequestInput): Accepted {
    const { urlMap, templateArgs = {}, idempotencyKey, supersede: said = false } = input;
    const prompt = ofPrompts.getPromptRow(org, promptId);
    const supersede = typeof said === "function" ? said(prompt) : said;
    // Hash the input, not the result: a prompt edited in between must not change the digest.
    const given = { ...input, templateArgs: Object.keys(templateArgs).length > 0 ? templateArgs : undefined };
    const idempotencyHash = idempotencyKey === undefined ? null : hashOf({ promptId: prompt.id, input: given });
    const earlier =
      idempotencyKey && idempotencyHash
        ? findEarlier(tx, org, idempotencyKey, idempotencyHash, now() - idempotencyMs)
        : undefined;
    if (earlier)
      return { evalRequestId: earlier.evalRequestId, runIds: runsOf(tx, org, earlier.evalRequestId), superseded: [] };
    if (prompt.status === "archived")
      throw conflict(
        `The prompt is archived. Unarchive it with PATCH /api/v1/prompts/${promptId} and {"status": "active"}.`,
      );
    const mapped = parseUrlMap(urlMap);
    const args = argsFor(prompt.templateVars, templateArgs);
    const fill = (text: string) => fillTemplate(text, args ?? {});
    const text = fill(prompt.text);
    const provider = prompt.targetProviderId === null ? null : getProvider(ctx, org, prompt.targetProviderId);
    const task: RunTask = {
      title: prompt.title,
      text,
      endGoal: prompt.endGoal === null ? null : fill(prompt.endGoal),
      ...(prompt.wordings && { wordings: prompt.wordings.map(fill) }),
      startUrls: startUrls({
        ...{ mapped, provider, additionalUrls: prompt.additionalUrls, text },
        mcpUrls: mcpUrlsOf(prompt.workspace ?? undefined),
      }),
      productUrl: provider?.productUrl ?? null,
      declaredChecks: prompt.declaredChecks ?? [],
      ...(prompt.workspace && { workspace: prompt.workspace }),
      reviewBeforePublishing: prompt.reviewBeforePublishing,
      limits: prompt.limits,
      ...(prompt.workerLabels.length > 0 && { workerLabels: prompt.workerLabels }),
    };
    const chosen = { agent: input.agent, model: input.model };
    const agents = ofPrompts.agentsFor(org, prompt, chosen);
    if (chosen.agent ?? chosen.model) task.chosen = chosen;
    if (agents.some(({ model }) => model !== null)) checkBudget(ctx, org);
    const createdAt = now();
    const evalRequestId = newId(createdAt);
    const repeats = input.runs === null ? (prompt.runsPerEval ?? 1) : (input.runs ?? 1);
    const accepted = repeated(agents, repeats).map((each) => ({ id: newId(createdAt), ...each }));
    const runIds = accepted.map(({ id }) => id);
    const superseded = supersede ? endings.supersede(tx, org, prompt.id, urlMap, runIds[0] as string) : [];
    insertEvalRequest({ id: evalRequestId, orgId: org, promptId: prompt.id, trigger: input.trigger, createdAt });
    const host = loadedHost(task.startUrls, compileMapping(mapped));
    for (const { id, agentIndex, agent, model } of accepted)
      insertPending(tx, host, {
        id,
        agentIndex,
        orgId: org,
        promptId: prompt.id,
        evalRequestId,
        urlMap,
        templateArgs: args,
        // A retry or a further run uses the same agent as the first.
        task: agents.length > 1 ? { ...task, chosen: { agent, model: model ?? undefined } } : task,
        agent,
        model,
        createdAt,
        idempotencyKey: idempotencyKey ?? null,
        idempotencyHash,
      });
    return { evalRequestId, runIds, superseded };
  }

  /** Inserts a run with its job. `host`: the one that it requests first. */
  function insertPending(tx: Tx, host: string, run: Pick<typeof runs.$inferSelect, Given>): void {
    insertRun({ ...run, ...notStarted });
    enqueue(ctx, tx, { pool: "runs", kind: "run", subject: run.id, orgId: run.orgId, host, maxAttempts });
  }

  /** Adds a run for each agent of an evaluation within a transaction; emit `jobQueued` afterwards. `model`: that of a single agent. */
  function addRun(tx: Tx, org: OrgId, evalRequestId: string, model: string | null): void {
    const own = and(eq(runs.orgId, org), eq(runs.evalRequestId, evalRequestId));
    const rows = tx.select().from(runs).where(own).orderBy(asc(runs.id)).all();
    if (rows.length === 0) throw notFound(`No evaluation has the ID ${evalRequestId}.`);
    const ofAgents = rows.filter((row, i) => i === rows.findIndex(({ agentIndex }) => agentIndex === row.agentIndex));
    for (const first of ofAgents)
      insertPending(tx, loadedHost(first.task.startUrls, createMapping(first.urlMap)), {
        ...first,
        id: newId(now()),
        createdAt: now(),
        model: ofAgents.length > 1 ? (first.task.chosen?.model ?? null) : model,
        idempotencyKey: null,
        idempotencyHash: null,
      });
  }

  /** Accepts an evaluation of a prompt and resolves once it is on disk. Throws what `accept` throws. */
  async function requestEval(org: OrgId, promptId: string, input: EvalRequestInput): Promise<Accepted> {
    const accepted = await commit((tx) => accept(tx, org, promptId, input));
    if (accepted.superseded.length > 0) endings.stopEnded(accepted.superseded);
    signals.jobQueued.emit();
    return accepted;
  }

  return {
    accept,
    addRun,
    requestEval,

    /** Retries a run: the prompt in its current version, with the same urlMap and templateArgs. Throws like `requestEval`. */
    requestAgain(org: OrgId, runId: string, trigger: Trigger, idempotencyKey?: string): Promise<Accepted> {
      const { id: rerunOf, promptId, urlMap, templateArgs, task } = getRunRow(db, org, runId);
      return requestEval(org, promptId, {
        ...task.chosen,
        urlMap,
        templateArgs: templateArgs ?? undefined,
        trigger,
        idempotencyKey,
        rerunOf,
      });
    },
  };
}

/** Every agent with its position, as often as said: alternating, so that no agent runs earlier than the others. */
const repeated = <T extends object>(agents: T[], times: number): (T & { agentIndex: number })[] =>
  Array.from({ length: times }, () => agents.map((each, agentIndex) => ({ ...each, agentIndex }))).flat();

const runsOf = (tx: Tx, org: OrgId, evalRequestId: string): string[] =>
  tx
    .select({ id: runs.id })
    .from(runs)
    .where(and(eq(runs.orgId, org), eq(runs.evalRequestId, evalRequestId)))
    .orderBy(asc(runs.id))
    .all()
    .map(({ id }) => id);

/** The run that an idempotency key created since `since`, epoch ms. Throws conflict if another request used the key. */
function findEarlier(tx: Tx, org: OrgId, key: string, hash: string, since: number) {
  const row = tx
    .select({ evalRequestId: runs.evalRequestId, hash: runs.idempotencyHash })
    .from(runs)
    .where(and(eq(runs.orgId, org), eq(runs.idempotencyKey, key), gt(runs.createdAt, since)))
    .orderBy(desc(runs.id))
    .get();
  if (row && row.hash !== hash)
    throw conflict("This Idempotency-Key was used for a different request in the last 24 hours. Use a new key.");
  return row;
}

/** The host that a run requests first, after urlMap, for the per-host limit. Empty if there is none. */
function loadedHost([first]: string[], { toHost }: Mapping): string {
  return first === undefined ? "" : toHost(new URL(first));
}
