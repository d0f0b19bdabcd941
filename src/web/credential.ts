import type { Keys } from "../auth/keys.ts";
import type { OrgId } from "../deps.ts";

/** The organisation of the API key in an Authorization header: `null` for a header that names none, or a key that may not read, `undefined` without a header. */
export function findOrg(request: Request, keys: Keys): OrgId | null | undefined {
  const header = request.headers.get("authorization");
  if (!header) return undefined;
  const key = /^bearer +(\S+)$/i.exec(header)?.[1];
  const found = key ? keys.findKey(key) : null;
  return found && (found.scopes === null || found.scopes.includes("read")) ? found.org : null;
}

/** Whether a request bears a cookie of somebody who signed in here. It may be old or wrong; without one nobody needs to ask. */
export const bearsSignIn = (request: Request): boolean =>
  /(?:^|;\s*)(?:__(?:Host|Secure)-)?evald\.session_token=/.test(request.headers.get("cookie") ?? "");

/** A path of this service, for the browser to go to after a sign-in: anything else leads home. */
export function toNext(text: string | null): string {
  const isPath = text !== null && /^\/(?![/\\])[\x21-\x7e]*$/.test(text) && !text.includes("\\");
  return isPath && !/^\/(sign-in|sign-out|setup)\b/.test(text) ? text : "/";
}
