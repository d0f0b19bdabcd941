import { mailNotification } from "../auth/mail.ts";
import { listMemberEmails, listOwnerEmails } from "../auth/members.ts";
import { getOrg } from "../auth/orgs.ts";
import { type Context, type OrgId, perContext } from "../context.ts";
import { timeZoneOf } from "../db/rows.ts";
import type { notifications } from "../db/tables/notifications.ts";
import { createGuard, GuardError } from "../net/guarded.ts";
import { readRetryAfter } from "../net/retry-after.ts";
import type { DestinationRow } from "./destinations.ts";
import { payloadOf } from "./events.ts";
import { type Message, toMessage, toText } from "./messages.ts";
import { unsealContent } from "./secrets.ts";
import { signedHeaders } from "./signing.ts";
import { toSlack } from "./slack.ts";

const defaultTimeoutMs = 20_000;
const maxBodyBytes = 16 * 1024;

/** The result of a try. `status`: null without a response. `ok`: the receiver accepted the notification. */
export type TryResult = {
  ok: boolean;
  status: number | null;
  ms: number;
  body: string | null;
  error: string | null;
  retryAfterMs: number | null;
  /** The secrets of the destination can't be decrypted, so nothing was sent. */
  isUnreadable?: true;
};

/** The page on which destinations are managed. */
export const settingsPath = "/settings/notifications";

const toFailure = (error: string) => ({ ok: false, status: null, body: null, error, retryAfterMs: null });

// Connections aren't kept. If the receiver had closed a kept connection, that would cost a try.
const guardOf = perContext(({ config, now }) => createGuard({ allow: config.allowPrivate, now, keepsAlive: false }));

/** Sends a notification to a destination, once. `timeoutMs`: how long a response may take. */
export async function sendNotification(
  ctx: Context,
  destination: DestinationRow,
  notification: typeof notifications.$inferSelect,
  { signal, timeoutMs = defaultTimeoutMs }: { signal: AbortSignal; timeoutMs?: number | undefined },
): Promise<TryResult> {
  const startedAt = performance.now();
  const result = await deliver(ctx, destination, notification, { signal, timeoutMs });
  return { ...result, ms: Math.round(performance.now() - startedAt) };
}

function deliver(
  ctx: Context,
  destination: DestinationRow,
  notification: typeof notifications.$inferSelect,
  limits: { signal: AbortSignal; timeoutMs: number },
) {
  const content = unsealContent(ctx, destination);
  if (!content)
    return {
      ...toFailure("The secrets of the destination can't be decrypted. Restore EVALD_SECRET_KEY."),
      isUnreadable: true as const,
    };
  const { kind, orgId, recipients, url, overlapUntil } = destination;
  const message = () => toMessage(notification, ctx.baseUrl(), timeZoneOf(ctx.db, orgId));
  if (kind === "email") return sendMail(ctx, orgId as OrgId, recipients, message());
  if (kind === "slack") return post(ctx, content.url ?? "", {}, JSON.stringify(toSlack(message())), limits);
  const body = payloadOf(notification);
  const signsWithBoth = overlapUntil !== null && ctx.now() < overlapUntil;
  const secrets = [content.secret, signsWithBoth ? content.previous : undefined].filter((each) => each !== undefined);
  const signatureHeaders = signedHeaders(secrets, notification.id, ctx.now(), body);
  return post(ctx, url ?? "", { ...content.headers, ...signatureHeaders }, body, limits);
}

async function post(
  ctx: Context,
  url: string,
  headers: Record<string, string>,
  body: string,
  limits: { signal: AbortSignal; timeoutMs: number },
) {
  const guard = guardOf(ctx);
  try {
    const response = await guard.request(url, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      ...limits,
      body,
      maxBytes: maxBodyBytes,
      cutsBody: true,
      followRedirects: false,
    });
    const { status } = response;
    const isRedirect = status >= 300 && status < 400;
    return {
      ok: status >= 200 && status < 300,
      status,
      body: guard.text(response) || null,
      error: isRedirect ? "Redirects are not followed. Set the URL that it redirects to." : null,
      retryAfterMs: readRetryAfter(response.headers.get("retry-after"), ctx.now()),
    };
  } catch (error) {
    if (error instanceof GuardError) return toFailure(`${error.message}.`);
    throw error;
  }
}

async function sendMail(ctx: Context, org: OrgId, recipients: string[] | null, message: Message) {
  const members = listMemberEmails(ctx, org);
  const to = recipients?.filter((address) => members.includes(address)) ?? listOwnerEmails(ctx, org);
  if (to.length === 0) return toFailure("None of the recipients is a member of the organization.");
  const isAccepted = await mailNotification(ctx, to, {
    subject: message.title,
    text: toText(message),
    orgName: getOrg(ctx, org).name,
    path: settingsPath,
  });
  if (!isAccepted) return toFailure("The mail server did not accept the email. The server log has its response.");
  return { ok: true, status: null, body: null, error: null, retryAfterMs: null };
}
