import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { checkOwner } from "../auth/authentication.ts";
import type { Context } from "../context.ts";
import { orgOf } from "../http/caller.ts";
import { errors, operation } from "../http/operation.ts";
import { PathId } from "../schema.ts";
import { Worker } from "./schema.ts";
import { dismissWorker, listWorkers, type Workers } from "./workers.ts";

const params = Type.Object({ workerId: PathId("ID of the worker") });

const dismisses = (operationId: string, summary: string, description: string) =>
  operation("Workers", operationId, summary, { 200: Worker, ...errors(404) }, { description });

/** Lists the machines that run agents, drains and removes them. Only owners change them. */
export const workerRoutes = (ctx: Context, workers: Workers) =>
  new Elysia({ name: "workers" })
    .get(
      "/api/v1/workers",
      ({ request }) => {
        // Workers belong to no organization, but listing them needs a key with the scope read.
        orgOf(request);
        return listWorkers(ctx, workers);
      },
      operation(
        "Workers",
        "listWorkers",
        "List workers by name",
        { 200: Type.Array(Worker, { description: "Connected workers" }), ...errors() },
        {
          description:
            "Empty if agents run on the server itself. Only on a server with a single organization; with several, use evald workers on the server.",
        },
      ),
    )
    .post(
      "/api/v1/workers/:workerId/drain",
      ({ request, params }) => {
        const org = orgOf(request);
        checkOwner(ctx, request, "manage workers");
        return dismissWorker(ctx, org, workers, params.workerId, "drain");
      },
      {
        params,
        ...dismisses(
          "drainWorker",
          "Drain a worker",
          "It takes no new sessions, finishes those that it has, and ends.",
        ),
      },
    )
    .delete(
      "/api/v1/workers/:workerId",
      ({ request, params }) => {
        const org = orgOf(request);
        checkOwner(ctx, request, "manage workers");
        return dismissWorker(ctx, org, workers, params.workerId, "remove");
      },
      {
        params,
        ...dismisses("removeWorker", "Remove a worker", "Its sessions start again on other workers, and it ends."),
      },
    );
