import { and, eq } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { transaction } from "../db/open.ts";
import { accounts, members, people, signIns } from "../db/tables.ts";
import { conflict, notFound } from "../errors.ts";
import { findPassword } from "./account.ts";
import type { Attempts } from "./attempts.ts";
import type { From } from "./engine-calls.ts";
import type { Links } from "./links.ts";
import type { Person } from "./person.ts";

const resetLifeMs = 24 * 3600_000;

/** In a reset link, replaces the ID of the owner who made it if the link was emailed or made by the operator. */
const service = "service";

type Inside = {
  links: Links;
  attempts: Attempts;
  hashOf: (password: string) => Promise<string>;
  signIn: (email: string, password: string, from: From) => Promise<string[]>;
};

/** Links that set a new password. */
export function createResets({ db, now, newId }: Context, { links, attempts, hashOf, signIn }: Inside) {
  /** Changing the password invalidates all earlier links. */
  const markOf = (personId: string) =>
    new Bun.CryptoHasher("sha256")
      .update(findPassword(db, personId)?.hash ?? "none")
      .digest("hex")
      .slice(0, 16);

  const toPath = (personId: string, maker: string) =>
    `/reset/${links.toToken("reset", personId, now() + resetLifeMs, markOf(personId), maker)}`;

  const orgsOf = (personId: string, role?: "owner"): string[] =>
    db
      .select({ org: members.orgId })
      .from(members)
      .where(and(eq(members.personId, personId), role && eq(members.role, role)))
      .all()
      .map((row) => row.org);

  /** Whether a person is a member of organizations, all of which another person owns. Then their account grants access to nothing else. */
  function mayReset(makerId: string, personId: string): boolean {
    const all = new Set(orgsOf(personId));
    return all.size > 0 && all.isSubsetOf(new Set(orgsOf(makerId, "owner")));
  }

  /** Throws not_found, with the reason, for an invalid link. */
  function readReset(token: string): Person & { isProven: boolean } {
    const [id = "", expiresAt = "0", mark = "", maker = ""] = links.readToken("reset", token) ?? [];
    const { name, email } = people;
    const person = db.select({ id: people.id, name, email }).from(people).where(eq(people.id, id)).get();
    if (!person || maker === "") throw notFound("This link is not valid. Copy the whole link, or ask for a new one.");
    if (mark !== markOf(id)) throw notFound("This link was already used. Sign in, or ask for a new link.");
    if (Number(expiresAt) <= now()) throw notFound("This link has expired. Ask for a new one.");
    const isProven = maker === service;
    // Check again, because the person may have joined another organization, or the maker may have lost theirs.
    if (!isProven && !mayReset(maker, id))
      throw notFound("This link is no longer valid, because memberships have changed. Ask for a new one.");
    return { ...person, isProven };
  }

  return {
    /** The path of a link that only the holder of the email address may get. Using it proves the address. */
    toResetPath: (personId: string): string => toPath(personId, service),
    readReset,

    /**
     * The path of a link that lets a member set a new password within a day. Throws conflict if the person is also in
     * an organization of which the caller isn't an owner, because the link would grant access to that one too.
     */
    resetPathFor(org: OrgId, memberId: string, asking: Person): { email: string; path: string } {
      const own = and(eq(members.orgId, org), eq(members.id, memberId), eq(people.id, members.personId));
      const person = db.select({ id: people.id, email: people.email }).from(people).innerJoin(members, own).get();
      if (!person) throw notFound("The member was not found.");
      if (!mayReset(asking.id, person.id))
        throw conflict(
          `${person.email} belongs to other organizations too. Ask the operator of this service for a reset link: evald person reset-link ${person.email}`,
        );
      return { email: person.email, path: toPath(person.id, asking.id) };
    },

    /** Sets the password, and signs the person out everywhere and in here. Returns the cookies. */
    async resetPassword(token: string, password: string, from: From): Promise<string[]> {
      readReset(token);
      const hash = await hashOf(password);
      const email = transaction(db, (tx) => {
        // Check again, because hashing takes time and a link works once.
        const person = readReset(token);
        const known = findPassword(db, person.id);
        const at = new Date(now());
        if (known) tx.update(accounts).set({ password: hash, updatedAt: at }).where(eq(accounts.id, known.id)).run();
        else
          tx.insert(accounts)
            .values({
              id: newId(now()),
              personId: person.id,
              accountId: person.id,
              providerId: "credential",
              password: hash,
              createdAt: at,
              updatedAt: at,
            })
            .run();
        tx.update(people).set({ emailVerified: person.isProven }).where(eq(people.id, person.id)).run();
        tx.delete(signIns).where(eq(signIns.personId, person.id)).run();
        return person.email;
      });
      attempts.succeed(email, from.address);
      return await signIn(email, password, from);
    },
  };
}
