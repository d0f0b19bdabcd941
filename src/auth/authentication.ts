import type { Context } from "../context.ts";
import { AppError } from "../errors.ts";
import { type Caller, callerOf } from "../http/caller.ts";
import { keyShape } from "../schema.ts";
import { findKey } from "./keys.ts";
import { listMemberships } from "./people.ts";

const keyHint = "Send the header Authorization: Bearer <API key>. Create a key with evald key create.";
const keyInQuery = new RegExp(`[?&][^#]*${keyShape.source}`);

// The router looks for the path after the eleventh character of the URL (`http://` and 4 more). `new URL` looks for it after the host.
const unambiguousUrl = /^https?:\/\/[^/?#\\]{4,}\//;

/**
 * Moves a request to `http://localhost` if a short, malformed or missing Host makes its path ambiguous. This changes the request itself. A copy would
 * never be answered if its body isn't read to the end.
 */
export function withUnambiguousPath(request: Request): Request {
  const { url } = request;
  if (unambiguousUrl.test(url) && URL.canParse(url)) return request;
  const afterHost = url.replace(/^https?:\/\/[^/?#\\]*/, "");
  const path = afterHost.startsWith("/") ? afterHost : `/${afterHost}`;
  return Object.defineProperty(request, "url", { value: new URL(`http://localhost${path}`).href });
}

/**
 * Authenticates a request only by its Authorization header. Throws `unauthorized` for a missing or repeated header, another scheme, and an unknown,
 * expired or revoked key. It also throws for a key in the query string, because that would end up in logs.
 */
export function authenticate(ctx: Context, request: Request): Caller {
  const header = request.headers.get("authorization");
  if (header === null) throw new AppError("unauthorized", `No API key was sent. ${keyHint}`);
  if (keyInQuery.test(request.url))
    throw new AppError("unauthorized", `API keys are not accepted in the URL. ${keyHint}`);
  const key = /^bearer +(\S+)$/i.exec(header)?.[1];
  // Two Authorization headers arrive as one, joined by a comma.
  if (!key || key.includes(","))
    throw new AppError("unauthorized", `The Authorization header must contain exactly one bearer token. ${keyHint}`);
  const caller = findKey(ctx, key);
  if (!caller) throw new AppError("unauthorized", `The API key is unknown, expired or revoked. ${keyHint}`);
  return caller;
}

/**
 * Throws forbidden unless an owner or the operator created the key of a request. The key of a CI job is never enough. `action`: what the error says
 * is forbidden.
 */
export function checkOwner(ctx: Context, request: Request, action: string): void {
  const { org, createdBy, name, trustId } = callerOf(request);
  if (trustId !== null)
    throw new AppError("forbidden", `The API key of a CI job can't ${action}. Use a key of an owner.`);
  const isOfOperator = createdBy === null;
  if (isOfOperator || listMemberships(ctx, createdBy).some((each) => each.org === org && each.role === "owner")) return;
  throw new AppError(
    "forbidden",
    `The API key ${JSON.stringify(name)} was not created by an owner of the organization. Only owners can ${action}: use a key of an owner.`,
  );
}
