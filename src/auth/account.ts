import { and, desc, eq, gt, ne } from "drizzle-orm";
import type { Context } from "../context.ts";
import { accounts, people, signIns } from "../db/tables.ts";
import { toIso, toName } from "../schema.ts";
import { shortAddress } from "./address.ts";
import type { Attempts } from "./attempts.ts";
import { type From, type GetEngine, toHeaders, withAppErrors } from "./engine-calls.ts";
import type { SignedIn } from "./person.ts";

/** A browser in which the person is signed in. */
export type SignIn = {
  id: string;
  userAgent: string;
  address: string;
  since: string;
  lastUsedAt: string;
  isThis: boolean;
};

type Inside = {
  engine: GetEngine;
  attempts: Attempts;
  hashOf: (password: string) => Promise<string>;
};

/** The password account of a person, if they have one. */
export function findPassword(db: Context["db"], personId: string): { id: string; hash: string | null } | undefined {
  const own = and(eq(accounts.personId, personId), eq(accounts.providerId, "credential"));
  return db.select({ id: accounts.id, hash: accounts.password }).from(accounts).where(own).get();
}

/** A person's own account and sessions. */
export function createAccount({ db, now }: Context, { engine, attempts, hashOf }: Inside) {
  return {
    rename({ person }: SignedIn, name: string): void {
      db.update(people)
        .set({ name: toName(name), updatedAt: new Date(now()) })
        .where(eq(people.id, person.id))
        .run();
    },

    hasPassword: ({ person }: SignedIn): boolean => findPassword(db, person.id) !== undefined,

    /** Signs the person out everywhere else. Returns the cookies of this session. */
    async changePassword({ person }: SignedIn, present: string, next: string, from: From): Promise<string[]> {
      attempts.begin(person.email, from.address);
      // Checked before the current password, so that the error message is ours.
      await hashOf(next);
      const { api } = await engine();
      const body = { currentPassword: present, newPassword: next, revokeOtherSessions: true };
      const { headers } = await withAppErrors(
        api.changePassword({ body, headers: toHeaders(from), returnHeaders: true }),
      );
      attempts.succeed(person.email, from.address);
      return headers.getSetCookie();
    },

    /** Last used first. */
    listSignIns: ({ person, signInId }: SignedIn): SignIn[] =>
      db
        .select()
        .from(signIns)
        .where(and(eq(signIns.personId, person.id), gt(signIns.expiresAt, new Date(now()))))
        .orderBy(desc(signIns.updatedAt))
        .all()
        .map(({ id, userAgent, ipAddress, createdAt, updatedAt }) => ({
          id,
          userAgent: userAgent ?? "",
          address: ipAddress ? shortAddress(ipAddress) : "",
          since: toIso(createdAt),
          lastUsedAt: toIso(updatedAt),
          isThis: id === signInId,
        })),

    /** Signs out one other session of the person; without an ID, all of them except this one. */
    endSignIn({ person, signInId }: SignedIn, id?: string): void {
      const own = and(
        eq(signIns.personId, person.id),
        id === undefined ? ne(signIns.id, signInId) : eq(signIns.id, id),
      );
      db.delete(signIns).where(own).run();
    },
  };
}
