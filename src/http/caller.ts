import type { OrgId } from "../context.ts";
import { AppError } from "../errors.ts";
import { findCurrentRequest } from "./current-request.ts";
import { includesScope, type KeyScope } from "./operation.ts";

/** What the API key of a request grants. */
export type Caller = {
  org: OrgId;
  /** Empty for a command on the server's machine, because it needs no key. */
  keyId: string;
  name: string;
  /** null: all scopes, except those that a key must name explicitly. */
  scopes: KeyScope[] | null;
  /** ID of the person who created the key; null if the command line or a CI job created it. */
  createdBy: string | null;
  /** ID of the trust by which a CI job got the key; null for all other keys. */
  trustId: string | null;
  /** For clients that were not written for evald. New runs replace unfinished ones, and the field `error` contains the detail of the error. */
  usesCompatibilityMode: boolean;
};

/** Finds the caller of a request by its API key. Throws unauthorized. */
export type Authenticate = (request: Request) => Caller;

/** The state of a request while it is handled. `startedAt`: by the monotonic clock. */
type RequestState = {
  id: string;
  startedAt: number;
  caller?: Caller;
  authenticate?: Authenticate;
  actor?: IdentifiedActor;
};

/** Who sent a request without an API key: the person who is signed in, or the trust that an ID token belongs to. */
type IdentifiedActor = { kind: "person" | "trust"; id: string; name: string };

const state = Symbol("state");
/** The state is stored as a property. A WeakMap of requests would take 0.6 µs longer, a twentieth of a read request. */
type TrackedRequest = Request & { [state]?: RequestState };

/** Gives a request its ID and the time of its start. */
export function trackRequest(request: Request): RequestState {
  const created: RequestState = { id: crypto.randomUUID(), startedAt: performance.now() };
  (request as TrackedRequest)[state] = created;
  return created;
}

/** The state of a request; undefined before `trackRequest`. */
export const findRequestState = (request: Request): RequestState | undefined => (request as TrackedRequest)[state];

/** Stores who sent a request. Throws what `authenticate` throws. */
export function identifyCaller(request: Request, authenticate: Authenticate): Caller {
  const caller = authenticate(request);
  const tracked = findRequestState(request) ?? trackRequest(request);
  tracked.caller = caller;
  tracked.authenticate = authenticate;
  return caller;
}

/** Stores who sent the current request, for the audit log. This grants no access. */
export function identifyActor({ kind, id, name }: IdentifiedActor): void {
  const request = findCurrentRequest();
  if (request) (findRequestState(request) ?? trackRequest(request)).actor = { kind, id, name };
}

/** The API key of a request to a path that needs one. */
export function callerOf(request: Request): Caller {
  const caller = findRequestState(request)?.caller;
  if (!caller) throw new Error("A route under /api/ was reached without authentication.");
  return caller;
}

/**
 * The organization of the request's API key. Throws forbidden if the key lacks the scope. The default scope is `read` for a GET, otherwise `write`.
 */
export function orgOf(request: Request, scope: KeyScope = request.method === "GET" ? "read" : "write"): OrgId {
  const caller = callerOf(request);
  checkScope(caller, scope);
  return caller.org;
}

/** Who requested a change, for failure reasons and histories. */
export const requesterOf = (request: Request): string => `the API key ${JSON.stringify(callerOf(request).name)}`;

/** Who requested something: a person, an API key or a trust. If all fields are missing, it was a schedule or the operator. */
export type Requester = { personId?: string; keyId?: string };

/**
 * Who sent a request: its API key, or the trust of a CI job, because such a job gets a new key each time. Empty for the command line on the server's
 * machine.
 */
export const toRequester = ({ keyId, trustId }: Caller): Requester => ({
  keyId: trustId ?? (keyId || undefined),
});

/** Whether a command on the server's machine sent the request, without a key. */
export const isCommandLine = ({ keyId }: Caller): boolean => keyId === "";

/** Whether the request has an API key in compatibility mode, for clients that were not written for evald. */
export const usesCompatibilityMode = (request: Request): boolean =>
  findRequestState(request)?.caller?.usesCompatibilityMode ?? false;

/** Whether the API key of a stream's request is still valid. A stream may live longer than the key. */
export function mayStillRead(request: Request): boolean {
  try {
    findRequestState(request)?.authenticate?.(request);
    return true;
  } catch {
    return false;
  }
}

/** Throws forbidden if the key lacks the scope. */
export function checkScope({ name, scopes }: Caller, scope: KeyScope): void {
  if (includesScope(scopes, scope)) return;
  const own =
    scopes === null
      ? "has all scopes except operate and audit"
      : `has the ${scopes.length === 1 ? "scope" : "scopes"} ${scopes.join(" and ")}`;
  throw new AppError(
    "forbidden",
    `The API key ${JSON.stringify(name)} ${own}. This request needs a key with the scope ${scope}.`,
  );
}

/** Throws forbidden if the key lacks the scope `audit`. Only keys that name this scope have it. */
export function checkMayReadAuditLog(caller: Caller): void {
  if (!isCommandLine(caller)) checkScope(caller, "audit");
}

/** Whether a key can only report friction. Such a key may be public. */
export const isReporter = ({ scopes }: Caller): boolean => scopes?.includes("report_friction") === true;
