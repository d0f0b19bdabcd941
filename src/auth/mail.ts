import type { Deps } from "../deps.ts";

const patienceMs = 10_000;

/** Sends mail by the operator's server. Without one, nothing is sent, and links are given by hand. */
export function createMail({ config, log, baseUrl }: Deps) {
  const { mail } = config.people;

  /** Whether the server took it. Why not is in the log, without what was to be sent. */
  async function send(to: string, subject: string, text: string): Promise<boolean> {
    if (!mail) return false;
    try {
      const { createTransport } = await import("nodemailer");
      const limits = { connectionTimeout: patienceMs, greetingTimeout: patienceMs, socketTimeout: patienceMs };
      const transport = createTransport({ url: mail.url, ...limits });
      await transport.sendMail({ from: mail.from, to, subject, text });
      return true;
    } catch (error) {
      log.error({ err: error }, "a mail could not be sent");
      return false;
    }
  }

  return {
    sendsMail: mail !== null,
    mailInvitation: (to: string, orgName: string, inviter: string, path: string): Promise<boolean> =>
      send(
        to,
        `${inviter} invites you to ${orgName}`,
        `${inviter} invites you to ${orgName} on evald, which measures how well AI agents get along with a developer tool.\n\n${baseUrl()}${path}\n\nThe address is good once, for seven days. If you expected nothing of the kind, ignore this mail.\n`,
      ),
    mailReset: (to: string, path: string): Promise<boolean> =>
      send(
        to,
        "A new password for evald",
        `Somebody, probably you, asked for a new password at ${baseUrl()}.\n\n${baseUrl()}${path}\n\nThe address is good once, for a day. If it was not you, ignore this mail: nothing has changed.\n`,
      ),
  };
}
