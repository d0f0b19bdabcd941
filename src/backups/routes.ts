import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { checkOperator, operatorOf } from "../auth/operators.ts";
import type { Context } from "../context.ts";
import { errors, operation } from "../http/operation.ts";
import { backUpNow, listBackups, maxListed } from "./backups.ts";
import { Backup } from "./schema.ts";

const description = "Needs a key with the scope operate.";

/** The backups that the service makes of itself, for operators. */
export const backupRoutes = (ctx: Context) =>
  new Elysia({ name: "backups" })
    .get(
      "/api/v1/backups",
      ({ request }) => {
        checkOperator(ctx, request);
        return listBackups(ctx, maxListed);
      },
      operation(
        "Backups",
        "listBackups",
        "List the backups of the service",
        { 200: Type.Array(Backup, { description: "The newest 100" }), ...errors() },
        { description },
      ),
    )
    .post(
      "/api/v1/backups",
      ({ request }) => {
        checkOperator(ctx, request);
        return backUpNow(ctx, operatorOf(ctx, request));
      },
      operation(
        "Backups",
        "createBackup",
        "Back the service up now",
        { 200: Backup, ...errors(409) },
        { description: `It starts within 5 seconds. ${description}` },
      ),
    );
