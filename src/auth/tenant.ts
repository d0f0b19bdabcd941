import { eq, sql } from "drizzle-orm";
import type { Context } from "../context.ts";
import { statement } from "../db/prepared.ts";
import { members, signIns } from "../db/tables/people.ts";
import { addressOf, networkOf } from "../http/address.ts";
import type { Tenant } from "../http/fair-queue.ts";
import { tenantOfOrg } from "../http/turns.ts";
import { cookieShape } from "./better-auth-calls.ts";
import { findKey } from "./keys.ts";

/** A session token in a cookie, without its signature. */
const sessionCookie = cookieShape("session_token", "(?<token>[^;.]+)");

/** The organization that a person selected. If they selected none, it is always the same one of their organizations. */
const orgOfSignIn = statement((db) =>
  db
    .select({
      org: sql<
        string | null
      >`coalesce(${signIns.orgId}, (select min(${members.orgId}) from ${members} where ${members.personId} = ${signIns.personId}))`,
    })
    .from(signIns)
    .where(eq(signIns.token, sql.placeholder("token"))),
);

/**
 * Whose turn a request takes: the organization of its valid key or session, or otherwise the network that it comes from. All networks together share
 * the turns of one organization, because anyone can have many networks. This grants no access.
 */
export function tenantOf(ctx: Context, request: Request): Tenant {
  const org = findOrg(ctx, request);
  return org ? tenantOfOrg(org) : { group: "", member: networkOf(addressOf(request)) };
}

/** The organization of a valid key or session. A database error is ignored here, because it is reported when the request is answered. */
function findOrg(ctx: Context, { headers }: Request): string | null {
  const key = /^bearer +(\S+)$/i.exec(headers.get("authorization") ?? "")?.[1];
  try {
    return key ? (findKey(ctx, key)?.org ?? null) : findOrgOfSession(ctx, headers.get("cookie") ?? "");
  } catch {
    return null;
  }
}

function findOrgOfSession(ctx: Context, cookie: string): string | null {
  const token = sessionCookie.exec(cookie)?.groups?.token;
  return token === undefined ? null : (orgOfSignIn(ctx.db).get({ token })?.org ?? null);
}
