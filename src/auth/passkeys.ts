import { isIP } from "node:net";
import { and, asc, eq } from "drizzle-orm";
import type { Context } from "../context.ts";
import { transaction } from "../db/open.ts";
import { passkeys, signIns } from "../db/tables/people.ts";
import { AppError, badRequest, notFound } from "../errors.ts";
import { toIso, toName } from "../schema.ts";
import { hasPassword, withPasswordOf } from "./account.ts";
import { type Client, loadBetterAuthWithPasskeys, toHeaders, withAppErrors } from "./better-auth-calls.ts";
import { mailFactorChange } from "./mail.ts";
import { recordAuditOfPerson, recordRefusal, recordSignIn } from "./people.ts";
import type { Person, SignedIn } from "./person.ts";
import { countPasskeyAttempt, recordPasskeySuccess } from "./sign-in-attempts.ts";

export type Passkey = ReturnType<typeof listPasskeys>[number];

/** A person without a password may add a passkey only within this time after signing in. */
const recentMs = 15 * 60_000;

/** Whether browsers allow passkeys at the URL of the service. They need HTTPS and a host name, or localhost. */
export function allowsPasskeys(ctx: Context): boolean {
  const { protocol, hostname } = new URL(ctx.baseUrl());
  return hostname === "localhost" || (protocol === "https:" && isIP(hostname.replace(/^\[|\]$/g, "")) === 0);
}

/** The passkeys of a person, oldest first. */
export const listPasskeys = (ctx: Context, { id }: Person) =>
  ctx.db
    .select({ id: passkeys.id, name: passkeys.name, createdAt: passkeys.createdAt })
    .from(passkeys)
    .where(eq(passkeys.personId, id))
    .orderBy(asc(passkeys.id))
    .all()
    .map((row) => ({ ...row, createdAt: toIso(row.createdAt) }));

/** What a browser needs to create a passkey, and the cookies of the challenge. Throws bad_request for a wrong password, and rate_limited. */
export async function beginPasskey(ctx: Context, signedIn: SignedIn, password: string, client: Client) {
  const { person, signInId } = signedIn;
  const { api } = await loadBetterAuthWithPasskeys(ctx);
  const headers = toHeaders(client);
  if (hasPassword(ctx, signedIn))
    await withPasswordOf(ctx, person, client, () => api.verifyPassword({ body: { password }, headers }));
  else {
    const row = ctx.db.select({ at: signIns.createdAt }).from(signIns).where(eq(signIns.id, signInId)).get();
    if (!row || row.at.getTime() < ctx.now() - recentMs)
      throw new AppError("forbidden", "You signed in a while ago. Sign out and in again to add a passkey.");
  }
  const options = await withAppErrors(api.generatePasskeyRegistrationOptions({ headers, returnHeaders: true }));
  return { options: options.response, cookies: options.headers.getSetCookie() };
}

/** Adds a passkey that a browser created. From now on, this session counts as signed in with the passkey. Throws bad_request. */
export async function addPasskey(ctx: Context, signedIn: SignedIn, name: string, credential: string, client: Client) {
  const { person, signInId } = signedIn;
  const passkeyName = toName(name);
  const { api } = await loadBetterAuthWithPasskeys(ctx);
  const body = { name: passkeyName, response: parseCredential(credential) };
  await withAppErrors(api.verifyPasskeyRegistration({ body, headers: toHeaders(client) }));
  transaction(ctx.db, (tx) => {
    tx.update(signIns)
      .set({ method: "passkey" })
      .where(and(eq(signIns.id, signInId), eq(signIns.method, "password")))
      .run();
    recordAuditOfPerson(ctx, person, "passkey.added", [{ field: "name", after: passkeyName }]);
  });
  void mailFactorChange(ctx, person.email, `The passkey "${passkeyName}" was added`);
}

/** Throws not_found. */
export function removePasskey(ctx: Context, { person }: SignedIn, id: string): void {
  const { name } = getPasskey(ctx, person, id);
  transaction(ctx.db, (tx) => {
    tx.delete(passkeys).where(eq(passkeys.id, id)).run();
    recordAuditOfPerson(ctx, person, "passkey.removed", [{ field: "name", after: name }]);
  });
  void mailFactorChange(ctx, person.email, `The passkey "${name}" was removed`);
}

/** Throws not_found. */
export function getPasskey(ctx: Context, person: Person, id: string): Passkey {
  const passkey = listPasskeys(ctx, person).find((each) => each.id === id);
  if (!passkey) throw notFound("The passkey was not found.");
  return passkey;
}

/** What a browser needs to sign in with a passkey, and the cookies of the challenge. Throws rate_limited. */
export async function beginPasskeySignIn(ctx: Context, client: Client) {
  countPasskeyAttempt(ctx, client.address);
  const { api } = await loadBetterAuthWithPasskeys(ctx);
  const { headers, response } = await api.generatePasskeyAuthenticationOptions({
    headers: toHeaders({ ...client, cookie: "" }),
    returnHeaders: true,
  });
  // better-auth would only prefer user verification.
  return { options: { ...response, userVerification: "required" as const }, cookies: headers.getSetCookie() };
}

/** Signs in with a passkey. `credential`: the browser's response to the challenge. Returns the cookies of the session. Throws unauthorized. */
export async function signInWithPasskey(ctx: Context, credential: string, client: Client): Promise<string[]> {
  const { api } = await loadBetterAuthWithPasskeys(ctx);
  // better-auth checks the shape of the credential.
  const body = { response: parseCredential(credential) as never };
  const attempt = api.verifyPasskeyAuthentication({ body, headers: toHeaders(client), returnHeaders: true });
  const { headers, response } = await recordRefusal(ctx, null, withAppErrors(attempt));
  recordPasskeySuccess(ctx, client.address);
  recordSignIn(ctx, response.user);
  return headers.getSetCookie();
}

/** Parses the JSON that a browser sent. Throws bad_request. */
function parseCredential(text: string): Record<string, unknown> {
  try {
    const credential: unknown = JSON.parse(text);
    if (typeof credential === "object" && credential !== null) return { ...credential };
  } catch {
    // Not JSON: the error below says so.
  }
  throw badRequest("The browser sent no passkey.");
}
