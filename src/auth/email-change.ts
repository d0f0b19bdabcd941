import { eq } from "drizzle-orm";
import { changesOf } from "../audit/entries.ts";
import type { Context } from "../context.ts";
import { transaction } from "../db/open.ts";
import { people } from "../db/tables/people.ts";
import { conflict, notFound } from "../errors.ts";
import { readLinkToken, toLinkToken } from "./links.ts";
import { mailEmailChange, sendsMail } from "./mail.ts";
import { findPerson, recordAuditOfPerson } from "./people.ts";
import { type Person, toEmail } from "./person.ts";

const linkLifeMs = 24 * 3600_000;

/**
 * Emails a link to a new address of a person. Opening the link changes the address. Returns the address. Throws bad_request for a malformed address,
 * and conflict if the service sends no email or the address is already used.
 */
export async function requestEmailChange(ctx: Context, person: Person, newEmail: string): Promise<string> {
  const email = toEmail(newEmail);
  if (!sendsMail(ctx))
    throw conflict("This service sends no email. Ask its operator to change your address: evald person set-email");
  if (findPerson(ctx, email)) throw conflict("Another account has this email address.");
  // An address contains periods, but a part of a token must not.
  const [newPart = "", oldPart = ""] = [email, person.email].map((each) => Buffer.from(each).toString("base64url"));
  const token = toLinkToken(ctx, "email", person.id, ctx.now() + linkLifeMs, newPart, oldPart);
  if (!(await mailEmailChange(ctx, email, `/account/email/${token}`)))
    throw conflict("The email could not be sent. Try again later.");
  return email;
}

/** The new address of a link. Throws not_found for an invalid link, and for a link of another person. */
export function readEmailChange(ctx: Context, person: Person, token: string): string {
  const [id, expiresAt = "0", newPart = "", oldPart = ""] = readLinkToken(ctx, "email", token) ?? [];
  const decode = (text: string) => Buffer.from(text, "base64url").toString();
  // A link works only once, because the old address no longer matches afterwards.
  const isUsed = decode(oldPart) !== person.email;
  if (id !== person.id || isUsed || Number(expiresAt) <= ctx.now())
    throw notFound("This link is not valid, has expired or was used. Change your email address again.");
  return decode(newPart);
}

/** Changes the address of a person. `isProven`: the holder of the address has opened a link. Throws conflict if the address is already used. */
export function changeEmail(ctx: Context, person: Person, newEmail: string, { isProven }: { isProven: boolean }): void {
  const email = toEmail(newEmail);
  transaction(ctx.db, (tx) => {
    if (findPerson(ctx, email)) throw conflict("Another account has this email address.");
    const updatedAt = new Date(ctx.now());
    tx.update(people).set({ email, emailVerified: isProven, updatedAt }).where(eq(people.id, person.id)).run();
    recordAuditOfPerson(ctx, person, "account.email_changed", changesOf(person, { email }));
  });
}
