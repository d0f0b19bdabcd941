import { type Context, perContext } from "../context.ts";
import { AppError, type ErrorCode } from "../errors.ts";
import type { BetterAuth } from "./better-auth.ts";
import { secretOf } from "./links.ts";

/** What better-auth needs to know of a request: its cookies, browser and IP address. */
export type Client = { cookie: string; userAgent: string; address: string };

/** The headers of a browser, in the form that better-auth reads. */
export const toHeaders = ({ cookie, userAgent, address }: Client): Headers =>
  new Headers({ cookie, "user-agent": userAgent, "x-evald-address": address });

/** The same browser, with new cookies that were not sent to it yet. */
export const withCookies = (client: Client, cookies: string[]): Client => ({
  ...client,
  cookie: cookies.map((cookie) => cookie.split(";")[0]).join("; "),
});

/**
 * The pattern of a better-auth cookie in a Cookie header. Over HTTPS, the name has a prefix. `value`: the source of a regular expression for the
 * value. The group `cookie` contains the cookie with its name.
 */
export const cookieShape = (name: string, value: string): RegExp =>
  new RegExp(`(?:^|;\\s*)(?<cookie>(?:__(?:Host|Secure)-)?evald\\.${name}=${value})`);

const errorsByCode: Record<string, [ErrorCode, string]> = {
  INVALID_EMAIL_OR_PASSWORD: ["unauthorized", "The email address or password is incorrect."],
  INVALID_EMAIL: ["unauthorized", "The email address or password is incorrect."],
  INVALID_CODE: ["unauthorized", "The code is incorrect."],
  INVALID_BACKUP_CODE: ["unauthorized", "The code is incorrect."],
  INVALID_TWO_FACTOR_COOKIE: ["unauthorized", "This sign-in has expired. Sign in again."],
  TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE: ["unauthorized", "Too many incorrect codes. Sign in again."],
  TOTP_ALREADY_ENABLED: ["conflict", "Two-factor sign-in is already on."],
  TOTP_NOT_ENABLED: ["conflict", "Two-factor sign-in is not on."],
  TWO_FACTOR_NOT_ENABLED: ["conflict", "Two-factor sign-in is not on."],
  CHALLENGE_NOT_FOUND: ["bad_request", "This request has expired. Try again."],
  PASSKEY_NOT_FOUND: ["unauthorized", "This passkey is not registered here. Sign in another way."],
  AUTHENTICATION_FAILED: ["unauthorized", "The passkey could not be verified."],
  FAILED_TO_VERIFY_REGISTRATION: ["bad_request", "The passkey could not be verified."],
  INVALID_PASSWORD: ["bad_request", "The current password is incorrect."],
  CREDENTIAL_ACCOUNT_NOT_FOUND: ["conflict", "Your account has no password. You sign in with your identity provider."],
  USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION: ["conflict", "This person is already a member."],
  INVITATION_LIMIT_REACHED: ["conflict", "There are already 1,000 pending invitations. Revoke some first."],
  INVITATION_NOT_FOUND: ["not_found", "The invitation was not found."],
  MEMBER_NOT_FOUND: ["not_found", "The member was not found."],
};

const codesByStatus: Record<number, ErrorCode> = {
  400: "bad_request",
  401: "unauthorized",
  403: "forbidden",
  404: "not_found",
  409: "conflict",
  429: "rate_limited",
};

/** Turns an error of better-auth into an AppError. If we know its code, the error has our wording. Otherwise it keeps its own. */
export async function withAppErrors<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof Error && "body" in error && "statusCode" in error)) throw error;
    const body = error.body as { code?: string; message?: string } | undefined;
    const [code, detail] = errorsByCode[body?.code ?? ""] ?? [codesByStatus[Number(error.statusCode)], body?.message];
    throw code && detail ? new AppError(code, detail) : error;
  }
}

type Loading = Promise<BetterAuth> | undefined;
const instances = perContext(() => ({ loading: undefined as Loading, withPasskeys: undefined as Loading }));

/** better-auth, which manages people. It is loaded at the first sign-in, because most processes never need it. */
export function loadBetterAuth(ctx: Context): Promise<BetterAuth> {
  const state = instances(ctx);
  state.loading ??= import("./better-auth.ts").then(({ createBetterAuth }) => createBetterAuth(ctx, secretOf(ctx)));
  return state.loading;
}

/** better-auth with the passkey plugin, whose packages take a while to load. */
export function loadBetterAuthWithPasskeys(ctx: Context): Promise<BetterAuth> {
  const state = instances(ctx);
  state.withPasskeys ??= Promise.all([import("./better-auth.ts"), import("./passkey-plugin.ts")]).then(
    ([{ createBetterAuth }, { createPasskeyPlugin }]) =>
      createBetterAuth(ctx, secretOf(ctx), { passkey: createPasskeyPlugin(new URL(ctx.baseUrl()).origin) }),
  );
  return state.withPasskeys;
}

const changes = perContext(() => ({ last: Promise.resolve() as Promise<unknown> }));

/** Runs changes to people one after another. Each of these changes first reads other rows. */
export function inSequence<T>(ctx: Context, work: () => Promise<T>): Promise<T> {
  const state = changes(ctx);
  const next = state.last.then(work, work);
  state.last = next.catch(() => {});
  return next;
}
