import type { Context, OrgId } from "../context.ts";
import { timeZoneOf } from "../db/rows.ts";
import type { notifications } from "../db/tables/notifications.ts";
import { createGuard, GuardError } from "../net/guarded.ts";
import { readRetryAfter } from "../net/retry-after.ts";
import type { DestinationRow, Destinations } from "./destinations.ts";
import { payloadOf } from "./events.ts";
import { type Message, toMessage } from "./messages.ts";
import { signedHeaders } from "./signing.ts";
import { toSlack } from "./slack.ts";

const defaultTimeoutMs = 20_000;
const maxBodyBytes = 16 * 1024;

/** The result of a try. `status` null: no response. `ok`: the receiver accepted it. */
export type Sent = {
  ok: boolean;
  status: number | null;
  ms: number;
  body: string | null;
  error: string | null;
  retryAfterMs: number | null;
};
export type Send = (
  destination: DestinationRow,
  notification: typeof notifications.$inferSelect,
  signal: AbortSignal,
) => Promise<Sent>;

type Parts = {
  destinations: Pick<Destinations, "unsealed">;
  userAgent: string;
  /** Email addresses of owners, and of all members. */
  emailsOf: (org: OrgId) => string[];
  ownersOf: (org: OrgId) => string[];
  mail: (org: OrgId, to: string[], message: Message) => Promise<boolean>;
  timeoutMs?: number;
};

const failed = (error: string) => ({ ok: false, status: null, body: null, error, retryAfterMs: null });

/** Sends a notification to a destination, once. */
export function createSend(
  { db, config, now, baseUrl }: Pick<Context, "db" | "config" | "now" | "baseUrl">,
  { destinations, userAgent, emailsOf, ownersOf, mail, timeoutMs = defaultTimeoutMs }: Parts,
): Send {
  // A kept connection that the receiver closed would cost a try.
  const guard = createGuard({ allow: config.allowPrivate, userAgent, now, keepsAlive: false });

  async function post(url: string, headers: Record<string, string>, body: string, signal: AbortSignal) {
    try {
      const response = await guard.request(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        ...{ body, signal, timeoutMs, maxBytes: maxBodyBytes, cutsBody: true, followRedirects: false },
      });
      const { status } = response;
      const isRedirect = status >= 300 && status < 400;
      return {
        ok: status >= 200 && status < 300,
        status,
        body: guard.text(response) || null,
        error: isRedirect ? "Redirects are not followed. Set the URL that it redirects to." : null,
        retryAfterMs: readRetryAfter(response.headers.get("retry-after"), now()),
      };
    } catch (error) {
      if (error instanceof GuardError) return failed(`${error.message}.`);
      throw error;
    }
  }

  async function sendMail(org: OrgId, recipients: string[] | null, message: Message) {
    const members = emailsOf(org);
    const to = recipients?.filter((address) => members.includes(address)) ?? ownersOf(org);
    if (to.length === 0) return failed("None of the recipients is a member of the organization.");
    return (await mail(org, to, message))
      ? { ok: true, status: null, body: null, error: null, retryAfterMs: null }
      : failed("The mail server did not accept the email. The server log has its response.");
  }

  function deliver(destination: DestinationRow, notification: typeof notifications.$inferSelect, signal: AbortSignal) {
    const content = destinations.unsealed(destination);
    if (!content) return failed("The secrets of the destination can't be decrypted. Restore EVALD_SECRET_KEY.");
    const { kind, orgId, recipients, url, overlapUntil } = destination;
    const message = () => toMessage(notification, baseUrl(), timeZoneOf(db, orgId));
    if (kind === "email") return sendMail(orgId as OrgId, recipients, message());
    if (kind === "slack") return post(content.url ?? "", {}, JSON.stringify(toSlack(message())), signal);
    const body = payloadOf(notification);
    const overlaps = overlapUntil !== null && now() < overlapUntil;
    const secrets = [content.secret, overlaps ? content.previous : undefined].filter((each) => each !== undefined);
    const signed = signedHeaders(secrets, notification.id, now(), body);
    return post(url ?? "", { ...content.headers, ...signed }, body, signal);
  }

  return async (destination, notification, signal) => {
    const startedAt = performance.now();
    const sent = await deliver(destination, notification, signal);
    return { ...sent, ms: Math.round(performance.now() - startedAt) };
  };
}
