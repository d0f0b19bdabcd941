import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { checkOperator, operatorOf } from "../auth/operators.ts";
import type { Context } from "../context.ts";
import { errors, operatorOperation } from "../http/operation.ts";
import { backUpNow, listBackups, maxListed } from "./backups.ts";
import { Backup } from "./schema.ts";

/** The backups that the service makes of itself, for operators. */
export const backupRoutes = (ctx: Context) =>
  new Elysia({ name: "backups" })
    .get(
      "/api/v1/backups",
      ({ request }) => {
        checkOperator(ctx, request);
        return listBackups(ctx, maxListed);
      },
      operatorOperation("Backups", "listBackups", "List the backups of the service", {
        200: Type.Array(Backup, { description: "The newest 100" }),
        ...errors(),
      }),
    )
    .post(
      "/api/v1/backups",
      ({ request }) => {
        checkOperator(ctx, request);
        return backUpNow(ctx, operatorOf(ctx, request));
      },
      operatorOperation("Backups", "createBackup", "Back the service up now", { 200: Backup, ...errors(409) }, [
        "It starts within 5 seconds.",
      ]),
    );
