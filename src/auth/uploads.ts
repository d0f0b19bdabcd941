import { and, eq } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { members } from "../db/tables/people.ts";
import { readLinkToken, toLinkToken } from "./links.ts";

/** A form that was left open overnight is kept. */
const lifeMs = 24 * 3600_000;

export const toUploadToken = (ctx: Context, org: OrgId, personId: string): string =>
  toLinkToken(ctx, "upload", org, personId, ctx.now() + lifeMs);

/** Whether the token is valid, and its holder still a member of the organization. */
export function isUploadToken(ctx: Context, token: string): boolean {
  const [org = "", personId = "", expiresAt = "0"] = readLinkToken(ctx, "upload", token) ?? [];
  if (Number(expiresAt) <= ctx.now()) return false;
  const own = and(eq(members.orgId, org), eq(members.personId, personId));
  return ctx.db.select({ id: members.id }).from(members).where(own).get() !== undefined;
}
