import type { Keys } from "../auth/keys.ts";
import type { OrgId } from "../deps.ts";

/** What makes a browser ask for a credential, and says which. */
export const challenge = 'Basic realm="evald: any user name, an API key as the password", charset="UTF-8"';

/** The organisation of the API key that stands in an Authorization header: as a Basic password, or as a Bearer credential. */
export function findOrg(request: Request, keys: Keys): OrgId | null {
  const [, scheme = "", value = ""] = /^(\S+) +(\S+)$/.exec(request.headers.get("authorization") ?? "") ?? [];
  if (/^bearer$/i.test(scheme)) return keys.findKey(value)?.org ?? null;
  if (!/^basic$/i.test(scheme)) return null;
  const decoded = Buffer.from(value, "base64").toString("utf8");
  return keys.findKey(decoded.slice(decoded.indexOf(":") + 1))?.org ?? null;
}
