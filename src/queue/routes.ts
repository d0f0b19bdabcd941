import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { checkOperator, operatorOf } from "../auth/operators.ts";
import type { Context } from "../context.ts";
import { pauseKinds } from "../db/tables/pauses.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, operatorOperation } from "../http/operation.ts";
import { pauseRuns, resumeRuns } from "../runs/pauses.ts";
import { sourceOf } from "../runs/requests.ts";
import { OneOf } from "../schema.ts";
import type { Workers } from "../workers/workers.ts";
import { listFailureGroups, retryGroup } from "./failures.ts";
import { getQueueOverview, toPause } from "./overview.ts";
import { FailureGroup, GroupRetry, QueueOverview, QueuePause, QueuePauseInput } from "./schema.ts";

/** The queue of all organizations, for operators. */
export const queueRoutes = (ctx: Context, workers: Workers) =>
  new Elysia({ name: "queue" })
    .get(
      "/api/v1/queue",
      ({ request }) => {
        checkOperator(ctx, request);
        return getQueueOverview(ctx, workers);
      },
      operatorOperation("Queue", "getQueue", "Get the queue of all organizations", { 200: QueueOverview, ...errors() }),
    )
    .post(
      "/api/v1/queue/pauses",
      async ({ request, body }) => {
        checkOperator(ctx, request);
        return toPause(ctx, await pauseRuns(ctx, body, body.reason ?? null, operatorOf(ctx, request)));
      },
      {
        ...jsonBody(QueuePauseInput),
        ...operatorOperation(
          "Queue",
          "pauseRuns",
          "Pause the runs of an organization or with an agent",
          { 200: QueuePause, ...errors(400, 404, 413) },
          ["Runs that have not started wait until they are resumed. Running ones end as usual."],
        ),
      },
    )
    .delete(
      "/api/v1/queue/pauses/:kind/:subject",
      async ({ request, params }) => {
        checkOperator(ctx, request);
        return toPause(ctx, await resumeRuns(ctx, params));
      },
      {
        params: Type.Object({
          kind: OneOf(pauseKinds),
          subject: Type.String({ maxLength: 200, description: "Name or ID of the organization, or ID of the agent" }),
        }),
        ...operatorOperation("Queue", "resumeRuns", "Resume the runs of an organization or with an agent", {
          200: QueuePause,
          ...errors(404),
        }),
      },
    )
    .get(
      "/api/v1/queue/failures",
      ({ request }) => {
        checkOperator(ctx, request);
        return listFailureGroups(ctx);
      },
      operatorOperation(
        "Queue",
        "listFailureGroups",
        "List what failed in the last week and was not retried, by cause",
        {
          200: Type.Array(FailureGroup, { description: "Largest group first" }),
          ...errors(),
        },
      ),
    )
    .post(
      "/api/v1/queue/failures/:groupId/retry",
      async ({ request, params }) => {
        checkOperator(ctx, request);
        return await retryGroup(ctx, params.groupId, sourceOf(request));
      },
      {
        params: Type.Object({ groupId: Type.String({ maxLength: 200, description: "ID of the group" }) }),
        ...operatorOperation(
          "Queue",
          "retryFailureGroup",
          "Retry a group of failures, the oldest 100",
          { 200: GroupRetry, ...errors(404) },
          ["Runs may cost money of their organizations."],
        ),
      },
    );
