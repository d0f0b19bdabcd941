import { and, asc, desc, eq, gt } from "drizzle-orm";
import type { Commit } from "../db/commit.ts";
import type { Tx } from "../db/open.ts";
import { preparedInsert } from "../db/rows.ts";
import { evalRequests, type RunTask, runs, type Trigger } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { conflict, notFound } from "../errors.ts";
import type { Queue } from "../jobs/queue.ts";
import { createMapping, parseUrlMap } from "../net/mapping.ts";
import type { Prompts } from "../prompts/prompts.ts";
import { argsFor, fillTemplate } from "../prompts/template.ts";
import type { Providers } from "../providers/providers.ts";
import type { Endings } from "./endings.ts";
import { getRunRow } from "./run-row.ts";
import type { Money } from "./spending.ts";
import { startUrls } from "./starts.ts";

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
  /** Default false. */
  supersede?: boolean;
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
  | "createdAt"
  | "idempotencyKey"
  | "idempotencyHash";
type Accepted = { evalRequestId: string; runIds: string[] };

export type Requests = ReturnType<typeof createRequests>;

type Parts = {
  prompts: Prompts;
  providers: Providers;
  endings: Endings;
  money: Pick<Money, "check">;
  queue: Queue;
  commit: Commit;
  /** Called once accepted runs are on disk. */
  onQueued: () => void;
};

export function createRequests(
  { db, now, newId }: Deps,
  { prompts: ofPrompts, providers, endings, money, queue, commit, onQueued }: Parts,
) {
  const insertEvalRequest = preparedInsert(db, evalRequests);
  const insertRun = preparedInsert(db, runs);

  /**
   * Accepts an evaluation of a prompt within a transaction: its evaluation, runs and jobs become visible together.
   * Throws not_found, conflict (archived, monthly budget spent, or idempotency key reused), missing_template_vars, bad_request (urlMap,
   * templateArgs, agent, model).
   */
  function accept(t: Tx, org: OrgId, promptId: string, input: EvalRequestInput): Accepted {
    const { urlMap, templateArgs = {}, idempotencyKey, supersede = false } = input;
    const prompt = ofPrompts.getPromptRow(org, promptId);
    // Hash the input, not the result: a prompt edited in between must not change the digest.
    const given = { ...input, templateArgs: Object.keys(templateArgs).length > 0 ? templateArgs : undefined };
    const idempotencyHash = idempotencyKey === undefined ? null : hashOf({ promptId: prompt.id, input: given });
    const earlier =
      idempotencyKey && idempotencyHash
        ? findEarlier(t, org, idempotencyKey, idempotencyHash, now() - idempotencyMs)
        : undefined;
    if (earlier) return { evalRequestId: earlier.evalRequestId, runIds: runsOf(t, org, earlier.evalRequestId) };
    if (prompt.status === "archived")
      throw conflict(
        `The prompt is archived. Unarchive it with PATCH /api/v1/prompts/${promptId} and {"status": "active"}.`,
      );
    const mapped = parseUrlMap(urlMap);
    const args = argsFor(prompt.templateVars, templateArgs);
    const fill = (text: string) => fillTemplate(text, args ?? {});
    const text = fill(prompt.text);
    const provider = prompt.targetProviderId === null ? null : providers.getProvider(org, prompt.targetProviderId);
    const task: RunTask = {
      title: prompt.title,
      text,
      endGoal: prompt.endGoal === null ? null : fill(prompt.endGoal),
      startUrls: startUrls({ mapped, provider, additionalUrls: prompt.additionalUrls, text }),
      productUrl: provider?.productUrl ?? null,
      declaredChecks: prompt.declaredChecks ?? [],
      ...(prompt.workspace && { workspace: prompt.workspace }),
      reviewBeforePublishing: prompt.reviewBeforePublishing,
      limits: prompt.limits,
    };
    const chosen = { agent: input.agent, model: input.model };
    const { agent, model } = ofPrompts.agentFor(org, prompt, chosen);
    if (chosen.agent ?? chosen.model) task.chosen = chosen;
    if (model !== null) money.check(org);
    const createdAt = now();
    const evalRequestId = newId(createdAt);
    const repeats = input.runs === null ? (prompt.runsPerEval ?? 1) : (input.runs ?? 1);
    const runIds = Array.from({ length: repeats }, () => newId(createdAt));
    if (supersede) endings.supersede(t, org, prompt.id, urlMap, runIds[0] as string);
    insertEvalRequest({ id: evalRequestId, orgId: org, promptId: prompt.id, trigger: input.trigger, createdAt });
    for (const id of runIds)
      insertPending(t, {
        id,
        orgId: org,
        promptId: prompt.id,
        evalRequestId,
        urlMap,
        templateArgs: args,
        task,
        agent,
        model,
        createdAt,
        idempotencyKey: idempotencyKey ?? null,
        idempotencyHash,
      });
    return { evalRequestId, runIds };
  }

  /** Inserts a run with its job. */
  function insertPending(t: Tx, run: Pick<typeof runs.$inferSelect, Given>): void {
    insertRun({
      ...run,
      status: "pending",
      agentVersion: null,
      attempt: 0,
      failureCause: null,
      failureDetail: null,
      startedAt: null,
      completedAt: null,
      reservedUsd: null,
    });
    const host = loadedHost(run.task.startUrls, run.urlMap);
    queue.enqueue(t, { kind: "run", subject: run.id, orgId: run.orgId, host, maxAttempts });
  }

  /** Adds a run of the same task to an evaluation within a transaction; call `onQueued` afterwards. `model`: the model to request. */
  function addRun(t: Tx, org: OrgId, evalRequestId: string, model: string | null): void {
    const own = and(eq(runs.orgId, org), eq(runs.evalRequestId, evalRequestId));
    const first = t.select().from(runs).where(own).orderBy(asc(runs.id)).limit(1).get();
    if (!first) throw notFound(`No evaluation has the ID ${evalRequestId}.`);
    insertPending(t, {
      ...first,
      id: newId(now()),
      createdAt: now(),
      model,
      idempotencyKey: null,
      idempotencyHash: null,
    });
  }

  /** Accepts an evaluation of a prompt and resolves once it is on disk. Throws what `accept` throws. */
  async function requestEval(org: OrgId, promptId: string, input: EvalRequestInput): Promise<Accepted> {
    const accepted = await commit((t) => accept(t, org, promptId, input));
    if (input.supersede) endings.onEnded();
    onQueued();
    return accepted;
  }

  return {
    accept,
    addRun,
    requestEval,
    onQueued,

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

const runsOf = (t: Tx, org: OrgId, evalRequestId: string): string[] =>
  t
    .select({ id: runs.id })
    .from(runs)
    .where(and(eq(runs.orgId, org), eq(runs.evalRequestId, evalRequestId)))
    .orderBy(asc(runs.id))
    .all()
    .map(({ id }) => id);

/** The run that an idempotency key created since `since`, epoch ms. Throws conflict if another request used the key. */
function findEarlier(t: Tx, org: OrgId, key: string, hash: string, since: number) {
  const row = t
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
function loadedHost(startUrls: string[], urlMap: Record<string, string>): string {
  const [first] = startUrls;
  if (first === undefined) return "";
  const url = new URL(first);
  return (createMapping(urlMap).toReal(url) ?? url).host;
}

const hashOf = (value: unknown): string => new Bun.CryptoHasher("sha256").update(canonical(value)).digest("hex");

/** JSON with sorted keys, so the digest does not depend on key order. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, item) =>
    item && typeof item === "object" && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  );
}
