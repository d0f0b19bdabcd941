import { type Column, type SQL, sql } from "drizzle-orm";
import type { OrgId } from "../context.ts";
import type { SignInPolicy } from "../db/tables/orgs.ts";
import { formerMembers, type Role, roles, type SignInMethod } from "../db/tables/people.ts";
import { badRequest, invalidField } from "../errors.ts";

/** A person with an account. */
export type Person = { id: string; name: string; email: string };
/** A person in one of their organizations. */
export type Membership = {
  org: OrgId;
  orgName: string;
  timeZone: string;
  role: Role;
  signInPolicy: SignInPolicy | null;
};
/** A signed-in person, their session, and the organization that they selected. */
export type SignedIn = {
  person: Person;
  signInId: string;
  token: string;
  method: SignInMethod;
  chosenOrg: string | null;
};
/** What a new account needs. */
export type NewPerson = { name: string; email: string; password: string };

/** Has no period at its start or end, and no two periods in a row. */
const localPart = /(?!\.)(?!.*\.\.)[a-z0-9_'+.-]*[a-z0-9_+-]/;
const domain = /(?:[a-z0-9][a-z0-9-]*\.)+[a-z]{2,}/;
/** The addresses that better-auth accepts, by the rule of https://zod.dev/api#emails. They are ASCII only, so that no two addresses look the same. */
const emailShape = new RegExp(`^${localPart.source}@${domain.source}$`, "i");

/** Whether a text is an email address. All addresses are checked by this rule. */
export const isEmail = (text: string): boolean => text.length <= 254 && emailShape.test(text);

/** Trims and lowercases an email address. Throws bad_request. */
export function toEmail(text: string): string {
  const email = text.trim();
  if (!isEmail(email)) throw invalidField("email", `${JSON.stringify(text.slice(0, 300))} is not an email address`);
  return email.toLowerCase();
}

/** Throws bad_request. */
export function toRole(text: string): Role {
  const role = roles.find((each) => each === text);
  if (!role) throw badRequest(`Invalid role: must be one of ${roles.join(", ")}.`);
  return role;
}

/** Thrown when the password was right, but signing in also needs a code. `cookies`: the cookies of the challenge, to send with the code. */
export class CodeNeeded extends Error {
  constructor(readonly cookies: string[]) {
    super("A code is needed to sign in.");
  }
}

/** Whether an organization still shows the name of a person. It no longer does after it has forgotten the person. */
export const isNamedIn = (orgId: Column | OrgId, personId: Column | string): SQL =>
  sql`not exists (select 1 from ${formerMembers} where ${formerMembers.orgId} = ${orgId}
    and ${formerMembers.personId} = ${personId} and ${formerMembers.forgottenAt} is not null)`;
