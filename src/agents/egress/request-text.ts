import type http from "node:http";

const maxChars = 8_000;
const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Headers whose values are secrets. */
const credentialHeaders = ["authorization", "cookie"];
/** Shorter parts of credentials, such as "Bearer", are in many texts. */
const minSecretChars = 8;

/** Collects what is sent to a product, because a response that repeats it proves nothing. */
export function createRequestSample(headers: http.OutgoingHttpHeaders) {
  const chunks: Buffer[] = [];
  let size = 0;
  const lines = Object.entries(headers).map(([name, value]) =>
    credentialHeaders.includes(name) ? `${name}: …` : `${name}: ${value}`,
  );
  const secrets = credentialHeaders
    .flatMap((name) => String(headers[name] ?? "").split(/[\s;=]+/))
    .filter((part) => part.length >= minSecretChars);
  return {
    add(chunk: Buffer): void {
      if (size <= maxChars) chunks.push(chunk);
      size += chunk.length;
    },
    /** The header lines and the body; undefined if the body is not plain text, or if they are too long. */
    text(): string | undefined {
      if (size > maxChars || (size > 0 && headers["content-encoding"] !== undefined)) return undefined;
      try {
        const text = `${lines.join("\n")}\n\n${utf8.decode(Buffer.concat(chunks))}`;
        return text.length > 4 * maxChars ? undefined : text;
      } catch {
        return undefined;
      }
    },
    /** A response that contains the credentials only repeats them. */
    isRepeatedIn: (response: string): boolean => secrets.some((secret) => response.includes(secret)),
  };
}
