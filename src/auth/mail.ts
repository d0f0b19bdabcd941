import type { Context } from "../context.ts";

const timeoutMs = 10_000;

/** Whether the service sends email. If it doesn't, people share links themselves. */
export const sendsMail = ({ config }: Context): boolean => config.people.mail !== null;

/** Sends the link of an invitation. Returns whether the email was sent. */
export const mailInvitation = (
  ctx: Context,
  to: string,
  { orgName, inviter, path }: { orgName: string; inviter: string; path: string },
) =>
  send(
    ctx,
    to,
    `${inviter} invited you to ${orgName} on evald`,
    `${inviter} invited you to join ${orgName} on evald, which measures how well AI agents can use a developer tool.\n\nAccept the invitation:\n${ctx.baseUrl()}${path}\n\nThis link works once and expires in 7 days. If you did not expect this invitation, you can ignore this email.\n`,
  );

/** Sends a link to choose a new password. Returns whether the email was sent. */
export const mailReset = (ctx: Context, to: string, path: string): Promise<boolean> =>
  send(
    ctx,
    to,
    "Reset your evald password",
    `Someone asked to reset the password of your evald account at ${ctx.baseUrl()}. To choose a new password, open this link:\n${ctx.baseUrl()}${path}\n\nThis link works once and expires in 24 hours. If it was not you, ignore this email; your password has not changed.\n`,
  );

/** Tells a person that a second factor was changed. `change`: what was changed, such as `Two-factor sign-in was turned on`. */
export const mailFactorChange = (ctx: Context, to: string, change: string): Promise<boolean> =>
  send(
    ctx,
    to,
    "The sign-in of your evald account changed",
    `${change} for your evald account at ${ctx.baseUrl()}. If that was you, you can ignore this email.\n\nIf it was not you, change your password, sign out all other sessions, and check the passkeys of your account:\n${ctx.baseUrl()}/account\n`,
  );

/** Sends a link to confirm a new email address. Returns whether the email was sent. */
export const mailEmailChange = (ctx: Context, to: string, path: string): Promise<boolean> =>
  send(
    ctx,
    to,
    "Confirm your new email address for evald",
    `Someone asked to use this address for their evald account at ${ctx.baseUrl()}. To confirm, sign in and open this link:\n${ctx.baseUrl()}${path}\n\nThis link works once and expires in 24 hours. If it was not you, ignore this email.\n`,
  );

/**
 * Sends a notification to members of an organization. They see each other's addresses. `path`: the path of the page where owners manage these emails.
 * Returns whether the email was sent.
 */
export const mailNotification = (
  ctx: Context,
  to: string[],
  { subject, text, orgName, path }: { subject: string; text: string; orgName: string; path: string },
) =>
  send(
    ctx,
    to,
    subject,
    `${text}\n\nYou’re receiving this email because ${orgName} sends notifications to you. Owners can change that at ${ctx.baseUrl()}${path}\n`,
  );

/** Tells people that evald disabled a destination, and why. `path`: the path of the destination's page. */
export const mailDestinationDisabled = (
  ctx: Context,
  to: string[],
  { orgName, name, reason, path }: { orgName: string; name: string; reason: string; path: string },
) =>
  send(
    ctx,
    to,
    `evald disabled the destination "${name}"`,
    `evald no longer sends notifications of ${orgName} to the destination "${name}": ${reason}\n\nIts log shows what it returned:\n${ctx.baseUrl()}${path}\n\nFix the cause, enable the destination, and replay the failed deliveries. You’re receiving this email because you’re an owner of ${orgName}.\n`,
  );

/** Tells a person that evald paused the schedule of a prompt. `path`: the path of the prompt's page. Returns whether the email was sent. */
export const mailPromptPaused = (
  ctx: Context,
  to: string,
  { orgName, title, path }: { orgName: string; title: string; path: string },
): Promise<boolean> =>
  send(
    ctx,
    to,
    `evald paused the prompt "${title}"`,
    `Five scheduled evaluations of the prompt "${title}" of ${orgName} failed in a row, so evald paused it. Its page shows why they failed:\n${ctx.baseUrl()}${path}\n\nFix the cause, then resume the prompt. You’re receiving this email because you’re an owner of ${orgName}.\n`,
  );

/** Returns whether the mail server accepted the email. Errors are logged without the content of the email, because it contains a secret link. */
async function send(ctx: Context, to: string | string[], subject: string, text: string): Promise<boolean> {
  const { mail } = ctx.config.people;
  if (!mail) return false;
  try {
    const { createTransport } = await import("nodemailer");
    const limits = { connectionTimeout: timeoutMs, greetingTimeout: timeoutMs, socketTimeout: timeoutMs };
    const transport = createTransport({ url: mail.url, ...limits });
    await transport.sendMail({ from: mail.from, to, subject, text });
    return true;
  } catch (error) {
    // The text of the error quotes the server's response. That may contain the password or the link.
    const { code, responseCode, command } = error as { code?: string; responseCode?: number; command?: string };
    ctx.log.error({ code, responseCode, command: command?.split(" ")[0] }, "could not send email");
    return false;
  }
}
