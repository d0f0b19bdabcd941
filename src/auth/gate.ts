import type { Scope } from "../api.ts";
import { AppError } from "../errors.ts";
import { keyShape } from "../schema.ts";
import type { FoundKey, Keys } from "./keys.ts";

/** Who asks: the organisation of the key, and the key. */
export type Caller = FoundKey;

const remedy = "send the header Authorization: Bearer <API key>; evald key create makes one";
const keyInQuery = new RegExp(`[?&][^#]*${keyShape.source}`);

// The router looks for the path behind the eleventh character of an address, `new URL` behind the host.
const readAlike = /^https?:\/\/[^/?#\\]{4,}\//;

/** The request as it came; on the origin `http://localhost` where a short, malformed or missing Host leaves unclear what its path is. */
export function withClearPath(request: Request): Request {
  const { url } = request;
  if (readAlike.test(url) && URL.canParse(url)) return request;
  const path = url.replace(/^https?:\/\/[^/?#\\]*/, "").replace(/^(?!\/)/, "/");
  return new Request(new URL(`http://localhost${path}`), request);
}

/**
 * Tells who a request comes from, by its Authorization header alone. Throws `unauthorized` for no header, two of them, another scheme, an
 * unknown, expired or revoked key, and for a key in the query string, where it would end in logs.
 */
export function callerOf(request: Request, keys: Keys): Caller {
  const header = request.headers.get("authorization");
  if (header === null) throw new AppError("unauthorized", `no credential was sent; ${remedy}`);
  if (keyInQuery.test(request.url))
    throw new AppError("unauthorized", `a key must not stand in the address; ${remedy}`);
  const key = /^bearer +(\S+)$/i.exec(header)?.[1];
  // Two Authorization headers arrive joined by a comma.
  if (!key || key.includes(",")) throw new AppError("unauthorized", `one bearer credential is needed; ${remedy}`);
  const caller = keys.findKey(key);
  if (!caller) throw new AppError("unauthorized", `the API key is unknown, expired or revoked; ${remedy}`);
  return caller;
}

/** Throws forbidden for a key that is held to other scopes. */
export function checkScope({ name, scopes }: Caller, scope: Scope): void {
  if (scopes === null || scopes.includes(scope)) return;
  throw new AppError(
    "forbidden",
    `the API key ${JSON.stringify(name)} is held to ${scopes.join(" and ")}; this takes a key with the scope ${scope}`,
  );
}
