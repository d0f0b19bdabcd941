import { eq } from "drizzle-orm";
import type { Context, OrgId } from "../context.ts";
import { members, orgs, signIns } from "../db/tables.ts";
import { conflict, notFound } from "../errors.ts";
import { type From, type GetEngine, withAppErrors } from "./engine-calls.ts";
import type { Links } from "./links.ts";
import type { InTurn, NewPerson, Person, SignedIn } from "./person.ts";

const setupLifeMs = 3 * 24 * 3600_000;

type Inside = {
  engine: GetEngine;
  links: Links;
  inTurn: InTurn;
  enter: (person: NewPerson, from: From, isProven: boolean) => Promise<string[]>;
  findPerson: (email: string) => Person | undefined;
};

/** The first owner of an organization. */
export function createSetup({ db, now }: Context, { engine, links, inTurn, enter, findPerson }: Inside) {
  const hasMembers = (org: string): boolean =>
    db.select({ id: members.id }).from(members).where(eq(members.orgId, org)).limit(1).get() !== undefined;

  /** The organization of a setup link. Throws not_found if the link is invalid, expired or used. */
  function readSetup(token: string): { org: OrgId; orgName: string } {
    const [org = "", expiresAt = "0"] = links.readToken("setup", token) ?? [];
    const row = db.select({ name: orgs.name }).from(orgs).where(eq(orgs.id, org)).get();
    if (!row)
      throw notFound(
        "This setup link is not valid. Copy the whole link, or create a new one with evald org setup-link.",
      );
    if (hasMembers(org))
      throw notFound("This setup link was already used. Ask an owner of the organization to invite you.");
    if (Number(expiresAt) <= now())
      throw notFound("This setup link has expired. Create a new one with evald org setup-link.");
    return { org: org as OrgId, orgName: row.name };
  }

  return {
    readSetup,

    /**
     * The path of a link that creates the first owner of an organization without people, valid for three days. Throws
     * conflict if it has people.
     */
    setupPath(org: OrgId): string {
      if (hasMembers(org))
        throw conflict("The organization already has members. Its owners can invite others under Settings, Members.");
      return `/setup/${links.toToken("setup", org, now() + setupLifeMs)}`;
    },

    /** Creates an organization owned by the signed-in person, and switches to it. */
    async addOwner(org: OrgId, { person, signInId }: SignedIn): Promise<void> {
      const { api } = await engine();
      await withAppErrors(api.addMember({ body: { userId: person.id, organizationId: org, role: "owner" } }));
      db.update(signIns).set({ orgId: org }).where(eq(signIns.id, signInId)).run();
    },

    /** Creates the first owner of an organization and signs them in. */
    setUp: (token: string, person: NewPerson, from: From): Promise<string[]> =>
      inTurn(async () => {
        const { org } = readSetup(token);
        const cookies = await enter(person, from, false);
        const { api } = await engine();
        const { id } = findPerson(person.email) as Person;
        await withAppErrors(api.addMember({ body: { userId: id, organizationId: org, role: "owner" } }));
        return cookies;
      }),
  };
}
