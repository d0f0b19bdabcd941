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
import type { Money } from "./spending.ts";
import { startUrls } from "./starts.ts";

const idempotencyMs = 24 * 3600_000;
/** A crash of the agent spends an attempt; a fault of what lies around it does not, and what an agent did is a result. */
const maxAttempts = 3;

export type EvalRequestInput = {
  urlMap: Record<string, string>;
  templateArgs?: Record<string, string>;
  /** Default 1; null: as many as the prompt says. */
  runs?: number | null;
  trigger: Trigger;
  idempotencyKey?: string;
  /** The run that is run again, by which an idempotency key tells this from any other request. */
  rerunOf?: string;
  /** What a gate asks for beside its runs, for the same purpose. */
  gate?: object;
  /** Default false. */
  supersede?: boolean;
};

/** What is known of a run when it is asked for. */
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
  /** Called once accepted runs are on the disk. */
  onQueued: () => void;
};

export function createRequests(
  { db, now, newId }: Deps,
  { prompts: ofPrompts, providers, endings, money, queue, commit, onQueued }: Parts,
) {
  const insertEvalRequest = preparedInsert(db, evalRequests);
  const insertRun = preparedInsert(db, runs);

  const runsOf = (t: Tx, org: OrgId, evalRequestId: string): string[] =>
    t
      .select({ id: runs.id })
      .from(runs)
      .where(and(eq(runs.orgId, org), eq(runs.evalRequestId, evalRequestId)))
      .orderBy(asc(runs.id))
      .all()
      .map(({ id }) => id);

  /** A run that an idempotency key made within the last day; conflict if it was made by another request. */
  function findEarlier(t: Tx, org: OrgId, key: string, hash: string) {
    const row = t
      .select({ evalRequestId: runs.evalRequestId, hash: runs.idempotencyHash })
      .from(runs)
      .where(and(eq(runs.orgId, org), eq(runs.idempotencyKey, key), gt(runs.createdAt, now() - idempotencyMs)))
      .orderBy(desc(runs.id))
      .get();
    if (row && row.hash !== hash)
      throw conflict("the Idempotency-Key was used for another request within 24 hours; use a new key");
    return row;
  }

  /**
   * Accepts an evaluation of a prompt, as a part of a transaction: its eval request, its runs and their jobs become visible together.
   * Throws not_found, conflict (archived, the month's money is spent, or an idempotency key used otherwise), missing_template_vars, bad_request (urlMap, templateArgs).
   */
  function accept(t: Tx, org: OrgId, promptId: string, input: EvalRequestInput): Accepted {
    const { urlMap, templateArgs = {}, idempotencyKey, supersede = false } = input;
    const prompt = ofPrompts.getPromptRow(org, promptId);
    // What was given, not what it comes to: a prompt that is changed in between makes no other request of it.
    const given = { ...input, templateArgs: Object.keys(templateArgs).length > 0 ? templateArgs : undefined };
    const idempotencyHash = idempotencyKey === undefined ? null : hashOf({ promptId: prompt.id, input: given });
    const earlier =
      idempotencyKey && idempotencyHash ? findEarlier(t, org, idempotencyKey, idempotencyHash) : undefined;
    if (earlier) return { evalRequestId: earlier.evalRequestId, runIds: runsOf(t, org, earlier.evalRequestId) };
    if (prompt.status === "archived")
      throw conflict(
        `the prompt is archived; PATCH /api/v1/prompts/${promptId} with {"status": "active"} brings it back`,
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
      reviewBeforePublishing: prompt.reviewBeforePublishing,
      limits: prompt.limits,
    };
    const { agent, model } = ofPrompts.agentOf(org, prompt);
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

  /** A run with its job. */
  function insertPending(t: Tx, run: Pick<typeof runs.$inferSelect, Given>): void {
    insertRun({
      ...run,
      status: "pending",
      agentVersion: null,
      attempt: 0,
      failureReason: null,
      startedAt: null,
      completedAt: null,
      reservedUsd: null,
    });
    const host = loadedHost(run.task.startUrls, run.urlMap);
    queue.enqueue(t, { kind: "run", subject: run.id, orgId: run.orgId, host, maxAttempts });
  }

  /** Adds a run of the same task to an evaluation, as a part of a transaction; `onQueued` is to be called after it. `model`: the one to ask for. */
  function addRun(t: Tx, org: OrgId, evalRequestId: string, model: string | null): void {
    const own = and(eq(runs.orgId, org), eq(runs.evalRequestId, evalRequestId));
    const first = t.select().from(runs).where(own).orderBy(asc(runs.id)).limit(1).get();
    if (!first) throw notFound(`no eval request has the id ${evalRequestId}`);
    insertPending(t, {
      ...first,
      id: newId(now()),
      createdAt: now(),
      model,
      idempotencyKey: null,
      idempotencyHash: null,
    });
  }

  /** Accepts an evaluation of a prompt and answers once it is on the disk. Throws what `accept` throws. */
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

    /** Accepts another run of what a run was about: the same prompt as it is now, with the same urlMap and templateArgs. Throws as `requestEval`. */
    requestAgain(org: OrgId, runId: string, trigger: Trigger, idempotencyKey?: string): Promise<Accepted> {
      const own = and(eq(runs.orgId, org), eq(runs.id, runId.toLowerCase()));
      const run = db
        .select({ id: runs.id, promptId: runs.promptId, urlMap: runs.urlMap, templateArgs: runs.templateArgs })
        .from(runs)
        .where(own)
        .get();
      if (!run) throw notFound(`no run has the id ${runId}`);
      const { id: rerunOf, promptId, urlMap, templateArgs } = run;
      return requestEval(org, promptId, {
        urlMap,
        templateArgs: templateArgs ?? undefined,
        trigger,
        idempotencyKey,
        rerunOf,
      });
    },
  };
}

/** The host that a run loads first, as the limits count it: where its first address leads, mapped as it will be. Empty if there is none. */
function loadedHost(startUrls: string[], urlMap: Record<string, string>): string {
  const [first] = startUrls;
  if (first === undefined) return "";
  const url = new URL(first);
  return (createMapping(urlMap).toReal(url) ?? url).host;
}

const hashOf = (value: unknown): string => new Bun.CryptoHasher("sha256").update(canonical(value)).digest("hex");

/** JSON with sorted keys, so that the same request has the same digest however its keys are ordered. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, item) =>
    item && typeof item === "object" && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  );
}
