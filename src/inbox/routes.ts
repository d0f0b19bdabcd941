import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import type { Context } from "../context.ts";
import { orgOf, requesterOf } from "../http/caller.ts";
import { jsonBody } from "../http/elysia.ts";
import { errors, operation } from "../http/operation.ts";
import { OneOf, PathId } from "../schema.ts";
import { explainScoreChange } from "./explanation.ts";
import { getInbox, markInboxItem } from "./inbox.ts";
import { Inbox, InboxItem, InboxMark, ScoreChangeExplanation, toWindows, Windows } from "./schema.ts";

export const inboxRoutes = (ctx: Context) =>
  new Elysia({ name: "inbox" })
    .get(
      "/api/v1/inbox",
      ({ request, query }) => getInbox(ctx, orgOf(request), { withSnoozed: query.snoozed === "true" }),
      {
        query: Type.Object({ snoozed: Type.Optional(OneOf(["true", "false"], "true: also snoozed problems")) }),
        ...operation("Inbox", "getInbox", "List what changed and needs attention, worst first", {
          200: Inbox,
          ...errors(400),
        }),
      },
    )
    .get(
      "/api/v1/prompts/:promptId/score-change",
      ({ request, params, query }) =>
        explainScoreChange(ctx, orgOf(request), params.promptId, toWindows(query.base, query.head)),
      {
        params: Type.Object({ promptId: PathId("ID of the prompt") }),
        query: Windows,
        ...operation("Inbox", "explainScoreChange", "Explain a change of a prompt's score, by default the newest", {
          200: ScoreChangeExplanation,
          ...errors(400, 404),
        }),
      },
    )
    .patch(
      "/api/v1/inbox/:itemId",
      ({ request, params, body }) => markInboxItem(ctx, orgOf(request), params.itemId, body, requesterOf(request)),
      {
        params: Type.Object({ itemId: Type.String() }),
        ...jsonBody(InboxMark),
        ...operation("Inbox", "markInboxItem", "Snooze or assign an item of the inbox", {
          200: InboxItem,
          ...errors(400, 404, 413),
        }),
      },
    );
