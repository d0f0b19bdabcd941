import { AppError, type ErrorCode } from "../errors.ts";
import type { Engine } from "./engine.ts";

/** From where a request comes: its cookies, its browser and the address of its sender. */
export type From = { cookie: string; userAgent: string; address: string };

/** The library, loaded when it is first needed. */
export type GetEngine = () => Promise<Engine>;

export const toHeaders = ({ cookie, userAgent, address }: From): Headers =>
  new Headers({ cookie, "user-agent": userAgent, "x-evald-address": address });

/** The same browser with cookies that it does not have yet. */
export const withCookies = (from: From, cookies: string[]): From => ({
  ...from,
  cookie: cookies.map((cookie) => cookie.split(";")[0]).join("; "),
});

const refusals: Record<string, [ErrorCode, string]> = {
  INVALID_EMAIL_OR_PASSWORD: ["unauthorized", "the address or the password is not right"],
  INVALID_EMAIL: ["unauthorized", "the address or the password is not right"],
  INVALID_PASSWORD: ["bad_request", "the present password is not right"],
  CREDENTIAL_ACCOUNT_NOT_FOUND: ["conflict", "you have no password here: you sign in with your identity provider"],
  USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION: ["conflict", "that person is a member already"],
  INVITATION_LIMIT_REACHED: ["conflict", "a thousand invitations wait already; revoke some"],
  INVITATION_NOT_FOUND: ["not_found", "there is no such invitation"],
  MEMBER_NOT_FOUND: ["not_found", "there is no such member"],
};

/** What the library refuses, in our words. */
export async function told<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    const body = error instanceof Error && "body" in error ? (error.body as { code?: string }) : null;
    const [code, detail] = refusals[body?.code ?? ""] ?? [];
    throw code && detail ? new AppError(code, detail) : error;
  }
}
