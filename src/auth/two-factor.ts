import { and, eq, gt, lt } from "drizzle-orm";
import type { Context } from "../context.ts";
import { type Tx, transaction } from "../db/open.ts";
import { passkeys, people, signIns, twoFactors, verifications } from "../db/tables/people.ts";
import { AppError, conflict } from "../errors.ts";
import { endOtherSignIns, withPasswordOf } from "./account.ts";
import { type Client, cookieShape, loadBetterAuth, toHeaders, withAppErrors } from "./better-auth-calls.ts";
import { mailFactorChange } from "./mail.ts";
import { endUnfinishedSignIns, getPerson, recordAuditOfPerson, recordRefusal, recordSignIn } from "./people.ts";
import type { Person, SignedIn } from "./person.ts";
import { countCodeAttempt, recordCodeSuccess } from "./sign-in-attempts.ts";
import { findStep, toBackupCode, toCode } from "./totp.ts";

/** Whether signing in needs a code after the password, and how many backup codes are left. */
export type TwoFactor = { isOn: boolean; backupCodesLeft: number };

/** Whether a person has turned on two-factor sign-in, and how many backup codes are left. */
export async function getTwoFactor(ctx: Context, { id }: Person): Promise<TwoFactor> {
  const row = ctx.db.select().from(twoFactors).where(eq(twoFactors.personId, id)).get();
  if (!row?.verified) return { isOn: false, backupCodesLeft: 0 };
  return { isOn: true, backupCodesLeft: JSON.parse((await unseal(ctx, row.backupCodes)) ?? "[]").length };
}

/** Starts the setup of an authenticator app. Returns the `otpauth:` URI to add to the app. Throws conflict, and bad_request for a wrong password. */
export async function beginTwoFactor(ctx: Context, { person }: SignedIn, password: string, client: Client) {
  const { api } = await loadBetterAuth(ctx);
  const setup = await withPasswordOf(ctx, person, client, () =>
    api.enableTwoFactor({ body: { password, method: "totp" }, headers: toHeaders(client) }),
  );
  if (setup.method !== "totp") throw new Error(`better-auth set up ${setup.method}.`);
  return setup.totpURI;
}

/**
 * Turns on two-factor sign-in with a code of the new authenticator app, and ends the person's other sessions. Returns the backup codes, and the
 * cookies of the session that replaces this one. Throws unauthorized for a wrong code, conflict if the setup wasn't started, and rate_limited.
 */
export async function confirmTwoFactor(ctx: Context, signedIn: SignedIn, code: string, client: Client) {
  const { person } = signedIn;
  const { api } = await loadBetterAuth(ctx);
  countCodeAttempt(ctx, person.id, client.address);
  await claimCode(ctx, person.id, toCode(code));
  // Sessions that were started without a code must not outlive the change. better-auth replaces this session.
  endOtherSignIns(ctx, signedIn);
  const { headers } = await withAppErrors(
    api.verifyTOTP({ body: { code: toCode(code) }, headers: toHeaders(client), returnHeaders: true }),
  );
  recordCodeSuccess(ctx, person.id, client.address);
  recordAuditOfPerson(ctx, person, "two_factor.enabled");
  void mailFactorChange(ctx, person.email, "Two-factor sign-in was turned on");
  const { backupCodes } = await api.viewBackupCodes({ body: { userId: person.id } });
  return { cookies: headers.getSetCookie(), backupCodes };
}

/** Replaces the backup codes. Throws bad_request for a wrong password, and conflict. */
export async function renewBackupCodes(ctx: Context, { person }: SignedIn, password: string, client: Client) {
  const { api } = await loadBetterAuth(ctx);
  const { backupCodes } = await withPasswordOf(ctx, person, client, () =>
    api.generateBackupCodes({ body: { password }, headers: toHeaders(client) }),
  );
  recordAuditOfPerson(ctx, person, "two_factor.backup_codes_renewed");
  void mailFactorChange(ctx, person.email, "The backup codes were replaced");
  return backupCodes;
}

/** Turns off two-factor sign-in. Returns the cookies of this session. Throws bad_request for a wrong password. */
export async function disableTwoFactor(ctx: Context, { person }: SignedIn, password: string, client: Client) {
  const { api } = await loadBetterAuth(ctx);
  const { headers } = await withPasswordOf(ctx, person, client, () =>
    api.disableTwoFactor({ body: { password }, headers: toHeaders(client), returnHeaders: true }),
  );
  transaction(ctx.db, (tx) => {
    endUnfinishedSignIns(tx, person.id);
    // The second factor of these sessions no longer exists.
    tx.update(signIns)
      .set({ method: "password" })
      .where(and(eq(signIns.personId, person.id), eq(signIns.method, "password_and_code")))
      .run();
    recordAuditOfPerson(ctx, person, "two_factor.disabled");
  });
  void mailFactorChange(ctx, person.email, "Two-factor sign-in was turned off");
  return headers.getSetCookie();
}

/**
 * The second step of a sign-in, with a code of the authenticator app or a backup code. Returns the cookies of the session. Throws rate_limited.
 * Throws unauthorized if the code is wrong or was used, or if there was no first step in the last 10 minutes.
 */
export async function signInWithCode(ctx: Context, text: string, client: Client): Promise<string[]> {
  const challenge = findChallenge(ctx, client);
  if (!challenge) throw new AppError("unauthorized", "This sign-in has expired. Sign in again.");
  const { person, cookie } = challenge;
  const { api } = await loadBetterAuth(ctx);
  countCodeAttempt(ctx, person.id, client.address);
  // Passes only this cookie. With the others, better-auth would check the code for the person who is signed in.
  const request = { headers: toHeaders({ ...client, cookie }), returnHeaders: true } as const;
  const code = toCode(text);
  const isBackupCode = !/^\d{6}$/.test(code);
  const verify = async () => {
    if (isBackupCode) return await api.verifyBackupCode({ body: { code: toBackupCode(code) }, ...request });
    await claimCode(ctx, person.id, code);
    return await api.verifyTOTP({ body: { code }, ...request });
  };
  const { headers } = await recordRefusal(ctx, person, withAppErrors(verify()));
  recordCodeSuccess(ctx, person.id, client.address);
  recordSignIn(ctx, person);
  if (isBackupCode) recordAuditOfPerson(ctx, person, "two_factor.backup_code_used");
  return headers.getSetCookie();
}

/** Whether the browser has passed the first step of a sign-in and still needs a code. */
export const isCodeNeeded = (ctx: Context, client: Client): boolean => findChallenge(ctx, client) !== null;

/**
 * Removes the authenticator app, the backup codes and the passkeys of a person, and signs them out everywhere. Only for the command line, whose
 * user has full access to the machine. Throws not_found.
 */
export function resetTwoFactor(ctx: Context, email: string): Person {
  const person = getPerson(ctx, email);
  transaction(ctx.db, (tx) => {
    removeFactors(tx, person.id);
    tx.delete(signIns).where(eq(signIns.personId, person.id)).run();
    recordAuditOfPerson(ctx, person, "two_factor.reset");
  });
  return person;
}

/** Removes everything that a person signs in with, except the password. Also removes unfinished sign-ins. */
export function removeFactors(tx: Tx, personId: string): void {
  tx.delete(twoFactors).where(eq(twoFactors.personId, personId)).run();
  tx.delete(passkeys).where(eq(passkeys.personId, personId)).run();
  endUnfinishedSignIns(tx, personId);
  tx.update(people).set({ twoFactorEnabled: false }).where(eq(people.id, personId)).run();
}

/** For example `__Host-evald.two_factor=ID.SIGNATURE`. */
const challengeCookie = cookieShape("two_factor", "(?<id>[^;.]+)[^;]*");

/** The person who passed the first step of a sign-in, and the cookie that says so. better-auth checks the signature of the cookie. */
function findChallenge(ctx: Context, client: Client) {
  const { cookie = "", id = "" } = challengeCookie.exec(client.cookie)?.groups ?? {};
  const person = ctx.db
    .select({ id: people.id, name: people.name })
    .from(verifications)
    .innerJoin(people, eq(people.id, verifications.value))
    .where(and(eq(verifications.identifier, id), gt(verifications.expiresAt, new Date(ctx.now()))))
    .get();
  return person ? { person, cookie } : null;
}

/** Accepts a code of the authenticator app, but only once. Throws conflict, and unauthorized for a wrong or used code. */
async function claimCode(ctx: Context, personId: string, code: string): Promise<void> {
  const row = ctx.db.select().from(twoFactors).where(eq(twoFactors.personId, personId)).get();
  if (!row) throw conflict("Start to set up two-factor sign-in first.");
  const secret = await unseal(ctx, row.secret);
  if (secret === null)
    throw conflict(
      "The secret file of this server was replaced, so no code can be checked. Ask the operator to run evald person reset-two-factor.",
    );
  const step = findStep(secret, code, ctx.now());
  if (step === null)
    throw new AppError("unauthorized", "The code is incorrect. Check that the clock of your device is right.");
  const updatedRows = ctx.db
    .update(twoFactors)
    .set({ lastStep: step })
    .where(and(eq(twoFactors.id, row.id), lt(twoFactors.lastStep, step)))
    .returning({ id: twoFactors.id })
    .all();
  if (updatedRows.length === 0)
    throw new AppError("unauthorized", "This code was already used. Wait for the next one, at most 30 seconds.");
}

/** Decrypts a text that better-auth sealed with the secret of the service; null if that secret was replaced. */
async function unseal(ctx: Context, data: string): Promise<string | null> {
  const { symmetricDecrypt } = await import("better-auth/crypto");
  const { secretConfig } = await (await loadBetterAuth(ctx)).$context;
  return symmetricDecrypt({ key: secretConfig, data }).catch(() => null);
}
