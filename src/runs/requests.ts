import { and, desc, eq, gt } from "drizzle-orm";
import { type Tx, tx } from "../db/open.ts";
import { preparedInsert } from "../db/rows.ts";
import { evalRequests, type RunTask, runs, type Trigger } from "../db/tables.ts";
import type { Deps, OrgId } from "../deps.ts";
import { conflict } from "../errors.ts";
import type { Queue } from "../jobs/queue.ts";
import { parseUrlMap } from "../net/mapping.ts";
import type { Prompts } from "../prompts/prompts.ts";
import { argsFor, fillTemplate } from "../prompts/template.ts";
import type { Providers } from "../providers/providers.ts";
import { startUrls } from "./starts.ts";

const idempotencyMs = 24 * 3600_000;
/** A crash or a fault of the network spends an attempt; what an agent did never does. */
const maxAttempts = 3;

export type EvalRequestInput = {
  urlMap: Record<string, string>;
  templateArgs?: Record<string, string>;
  /** Default 1. */
  runs?: number;
  trigger: Trigger;
  idempotencyKey?: string;
};

export type Requests = ReturnType<typeof createRequests>;

type Parts = { prompts: Prompts; providers: Providers; queue: Queue; defaultAgent: string; onQueued: () => void };

export function createRequests(
  { db, now, newId }: Deps,
  { prompts: ofPrompts, providers, queue, defaultAgent, onQueued }: Parts,
) {
  const insertEvalRequest = preparedInsert(db, evalRequests);
  const insertRun = preparedInsert(db, runs);

  /** The run that an idempotency key made within the last day; conflict if it was made by another request. */
  function findEarlier(t: Tx, org: OrgId, key: string, hash: string) {
    const row = t
      .select({ id: runs.id, evalRequestId: runs.evalRequestId, hash: runs.idempotencyHash })
      .from(runs)
      .where(and(eq(runs.orgId, org), eq(runs.idempotencyKey, key), gt(runs.createdAt, now() - idempotencyMs)))
      .orderBy(desc(runs.id))
      .get();
    if (row && row.hash !== hash)
      throw conflict("the Idempotency-Key was used for another request within 24 hours; use a new key");
    return row;
  }

  return {
    /**
     * Accepts an evaluation of a prompt: its eval request, its runs and their jobs become visible together. Answers with the ids.
     * Throws not_found, conflict (archived, or an idempotency key used otherwise), missing_template_vars, bad_request (urlMap, templateArgs).
     */
    requestEval(org: OrgId, promptId: string, input: EvalRequestInput): { evalRequestId: string; runIds: string[] } {
      const { urlMap, templateArgs = {}, idempotencyKey } = input;
      const idempotencyHash = idempotencyKey === undefined ? null : hashOf({ promptId, input });
      const accepted = tx(db, (t) => {
        const prompt = ofPrompts.getPromptRow(org, promptId);
        const earlier =
          idempotencyKey && idempotencyHash ? findEarlier(t, org, idempotencyKey, idempotencyHash) : undefined;
        if (earlier) return { evalRequestId: earlier.evalRequestId, runIds: [earlier.id] };
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
          declaredChecks: prompt.declaredChecks ?? [],
          reviewBeforePublishing: prompt.reviewBeforePublishing,
        };
        const createdAt = now();
        const evalRequestId = newId(createdAt);
        insertEvalRequest({ id: evalRequestId, orgId: org, promptId: prompt.id, trigger: input.trigger, createdAt });
        const runIds = Array.from({ length: input.runs ?? 1 }, () => newId(createdAt));
        for (const id of runIds) {
          insertRun({
            id,
            orgId: org,
            promptId: prompt.id,
            evalRequestId,
            status: "pending",
            urlMap,
            templateArgs: args,
            task,
            agent: prompt.agent ?? defaultAgent,
            agentVersion: null,
            model: prompt.model,
            attempt: 0,
            failureReason: null,
            createdAt,
            startedAt: null,
            completedAt: null,
            idempotencyKey: idempotencyKey ?? null,
            idempotencyHash,
          });
          queue.enqueue(t, { kind: "run", subject: id, maxAttempts });
        }
        return { evalRequestId, runIds };
      });
      onQueued();
      return accepted;
    },
  };
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
