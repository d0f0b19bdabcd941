import { cookieShape } from "../auth/better-auth-calls.ts";
import { findKey } from "../auth/keys.ts";
import type { Context, OrgId } from "../context.ts";

/** The organization of the API key in an Authorization header; null if the key is invalid or may not read. */
export function findOrgOfKey(ctx: Context, header: string): OrgId | null {
  const key = /^bearer +(\S+)$/i.exec(header)?.[1];
  const caller = key ? findKey(ctx, key) : null;
  return caller && (caller.scopes === null || caller.scopes.includes("read")) ? caller.org : null;
}

const sessionCookie = cookieShape("session_token", "");

/** Whether a request has a session cookie, valid or not. Without such a cookie, no lookup is needed. */
export const hasSessionCookie = (request: Request): boolean => sessionCookie.test(request.headers.get("cookie") ?? "");

/** The path to open after signing in. Anything other than a path of this server becomes `/`. */
export function toPathAfterSignIn(text: string | null): string {
  const path = toOwnPath(text);
  return /^\/(sign-in|sign-out|reset)\b/.test(path) ? "/" : path;
}

/**
 * The text itself, if it is a path of this server. Anything else becomes `/`, such as `//example.com`, because browsers treat that as another host.
 */
export const toOwnPath = (text: string | null): string =>
  text !== null && /^\/(?!\/)[\x21-\x7e]*$/.test(text) && !text.includes("\\") ? text : "/";
