import type { Context, OrgId } from "../context.ts";
import { newDestinationRow } from "./destinations.ts";
import type { DestinationInput } from "./schema.ts";
import { sendNotification, type TryResult } from "./send.ts";

const timeoutMs = 10_000;

/** Sends a test event once, and stores nothing. For a webhook, the event is signed with a random secret. Throws bad_request. */
export async function tryDestination(ctx: Context, org: OrgId, input: DestinationInput): Promise<TryResult> {
  const createdAt = ctx.now();
  const { row } = newDestinationRow(ctx, org, input, ctx.newId(createdAt));
  const notification = {
    id: ctx.newId(createdAt),
    orgId: org,
    type: "destination.test",
    onceKey: null,
    promptId: null,
    data: { destination: { id: row.id, name: row.name } },
    createdAt,
  };
  return await sendNotification(ctx, row, notification, { signal: ctx.stopping, timeoutMs });
}
