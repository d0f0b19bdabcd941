import { and, desc, eq, gt, ne } from "drizzle-orm";
import { changesOf } from "../audit/entries.ts";
import type { Context } from "../context.ts";
import { transaction } from "../db/open.ts";
import { people, signIns } from "../db/tables/people.ts";
import { normalizeIp } from "../http/address.ts";
import { toIso, toName } from "../schema.ts";
import { type Client, loadBetterAuth, toHeaders, withAppErrors } from "./better-auth-calls.ts";
import { withPasswordTurn } from "./password-turns.ts";
import { endUnfinishedSignIns, findPassword, hashPassword, recordAuditOfPerson } from "./people.ts";
import type { Person, SignedIn } from "./person.ts";
import { countSignInAttempt, recordSignInSuccess } from "./sign-in-attempts.ts";

/** A session of a person in a browser. */
export type SignIn = ReturnType<typeof listSignIns>[number];

/** Changes the name of a person. Throws bad_request. */
export function renamePerson(ctx: Context, { person }: SignedIn, name: string): void {
  const newName = toName(name);
  transaction(ctx.db, (tx) => {
    tx.update(people)
      .set({ name: newName, updatedAt: new Date(ctx.now()) })
      .where(eq(people.id, person.id))
      .run();
    recordAuditOfPerson(ctx, { ...person, name: newName }, "account.renamed", changesOf(person, { name: newName }));
  });
}

/** Whether a person can sign in with a password. */
export const hasPassword = (ctx: Context, { person }: SignedIn): boolean => findPassword(ctx, person.id) !== undefined;

/** Changes the password, and ends all other sessions of the person. Returns the cookies of this session. */
export async function changePassword(
  ctx: Context,
  { person }: SignedIn,
  currentPassword: string,
  newPassword: string,
  client: Client,
): Promise<string[]> {
  // Checks the new password before better-auth does, so that our own error message is shown.
  await hashPassword(ctx, newPassword, client);
  const { api } = await loadBetterAuth(ctx);
  const body = { currentPassword, newPassword, revokeOtherSessions: true };
  const { headers } = await withPasswordOf(ctx, person, client, () =>
    api.changePassword({ body, headers: toHeaders(client), returnHeaders: true }),
  );
  transaction(ctx.db, (tx) => {
    endUnfinishedSignIns(tx, person.id);
    recordAuditOfPerson(ctx, person, "password.changed");
  });
  return headers.getSetCookie();
}

/** Runs a call of better-auth that checks the person's password. Throws bad_request for a wrong password, and rate_limited. */
export async function withPasswordOf<T>(
  ctx: Context,
  { email }: Person,
  { address }: Client,
  work: () => Promise<T>,
): Promise<T> {
  countSignInAttempt(ctx, email, address);
  const result = await withPasswordTurn(ctx, address, () => withAppErrors(work()));
  recordSignInSuccess(ctx, email, address);
  return result;
}

/** The sessions of the person. The one that was used last comes first. */
export const listSignIns = (ctx: Context, { person, signInId }: SignedIn) =>
  ctx.db
    .select()
    .from(signIns)
    .where(and(eq(signIns.personId, person.id), gt(signIns.expiresAt, new Date(ctx.provenTime.now()))))
    .orderBy(desc(signIns.updatedAt))
    .all()
    .map(({ id, userAgent, ipAddress, method, createdAt, updatedAt }) => ({
      id,
      method,
      userAgent: userAgent ?? "",
      address: ipAddress ? normalizeIp(ipAddress) : "",
      since: toIso(createdAt),
      lastUsedAt: toIso(updatedAt),
      isCurrent: id === signInId,
    }));

/** Ends one other session of the person. Without an ID, it ends all sessions except this one. */
export function endOtherSignIns(ctx: Context, { person, signInId }: SignedIn, id?: string): void {
  const where = and(eq(signIns.personId, person.id), id === undefined ? ne(signIns.id, signInId) : eq(signIns.id, id));
  transaction(ctx.db, (tx) => {
    const ended = tx.delete(signIns).where(where).returning({ id: signIns.id }).all();
    if (ended.length > 0) recordAuditOfPerson(ctx, person, "session.ended", changesOf({}, { sessions: ended.length }));
  });
}
