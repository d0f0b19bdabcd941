import { recordAudit } from "../audit/entries.ts";
import { hasOneOrg } from "../auth/orgs.ts";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { AppError, notFound } from "../errors.ts";
import type { WorkerStatus } from "../places/messages.ts";
import type { WorkerExecutor } from "../places/worker-executor.ts";
import { toIso } from "../schema.ts";
import type { Worker } from "./schema.ts";

/** The workers of the service; null: agents run on this machine. */
export type Workers = WorkerExecutor | null;

/** A worker as responses show it. `now`: epoch ms. */
export const toWorker = ({ connectedMs, silentMs, ...rest }: WorkerStatus, now: number): Worker => ({
  ...rest,
  connectedAt: toIso(now - connectedMs),
  lastSeenAt: toIso(now - silentMs),
});

/** Lists workers by name. They belong to the operator of the service, so it throws forbidden if there are several organizations. */
export function listWorkers(ctx: Context, workers: Workers): Worker[] {
  if (workers && !hasOneOrg(ctx))
    throw new AppError(
      "forbidden",
      "This server has several organizations, so its workers are managed with evald workers on the server.",
    );
  return workers?.list().map((each) => toWorker(each, ctx.now())) ?? [];
}

/**
 * `drain` makes a worker finish its sessions and end. `remove` makes it end and takes its sessions back, which start again on other workers. Throws
 * forbidden and not_found.
 */
export function dismissWorker(
  ctx: Context,
  org: OrgId,
  workers: Workers,
  id: string,
  action: "drain" | "remove",
): Worker {
  const findWorker = () => listWorkers(ctx, workers).find((each) => each.id === id.toLowerCase());
  const worker = findWorker();
  if (!worker || !workers?.dismiss(worker.id, action)) throw notFound(`No worker has the ID ${id}.`);
  transaction(ctx.db, () => recordAudit(ctx, org, action === "drain" ? "worker.drained" : "worker.removed", worker));
  return findWorker() ?? worker;
}
