import { createHmac, randomBytes } from "node:crypto";

const prefix = "whsec_";

/** A signing secret in the format of Standard Webhooks. */
export const newSecret = (): string => prefix + randomBytes(32).toString("base64");

/** The headers of Standard Webhooks 1.0.0, with a signature for each secret. `sentAt`: epoch milliseconds. */
export function signedHeaders(secrets: string[], id: string, sentAt: number, body: string): Record<string, string> {
  const timestamp = String(Math.floor(sentAt / 1000));
  const sign = (secret: string) =>
    createHmac("sha256", Buffer.from(secret.slice(prefix.length), "base64"))
      .update(`${id}.${timestamp}.${body}`)
      .digest("base64");
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": secrets.map((secret) => `v1,${sign(secret)}`).join(" "),
  };
}
