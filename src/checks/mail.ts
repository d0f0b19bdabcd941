import { reasonOf } from "../errors.ts";
import { isAboutCertificate } from "../net/operator-request.ts";
import { type CheckInput, type Finding, notApplicable, ok, problemFound } from "./finding.ts";
import type { Cause } from "./problems.ts";

const timeoutMs = 6_000;

/** Whether the SMTP server takes a connection, TLS and the login. Sends nothing. */
export async function checkMail({ config }: CheckInput): Promise<Finding> {
  const { mail } = config.people;
  if (mail === null) return notApplicable("EVALD_SMTP_URL is not set");
  const { host } = new URL(mail.url);
  const { createTransport } = await import("nodemailer");
  const transport = createTransport({
    url: mail.url,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
  });
  try {
    await transport.verify();
    return ok(host);
  } catch (error) {
    const { code = "", responseCode } = error as { code?: string; responseCode?: number };
    // The server's text about a refused login may repeat the login.
    const detail = responseCode === undefined ? `${host}: ${reasonOf(error)}` : `${host} returned ${responseCode}`;
    return problemFound(causeOf(code, reasonOf(error)), detail, host);
  } finally {
    transport.close();
  }
}

function causeOf(code: string, reason: string): Cause {
  if (isAboutCertificate(reason)) return "smtp_certificate";
  if (code === "EAUTH") return "smtp_login_refused";
  // With the wrong scheme for a port, one side waits for TLS and the other for a greeting.
  if (/EPROTOCOL|EENVELOPE|ETLS/.test(code) || /wrong version number|greeting|ssl|tls/i.test(reason))
    return "smtp_failed";
  return "smtp_unreachable";
}
