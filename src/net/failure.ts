/** Why a request failed. `refused`: blocked by our own rules, so it says nothing about the target. */
export type GuardErrorKind =
  | "refused"
  | "dns"
  | "unreachable"
  | "timeout"
  | "too_large"
  | "redirect"
  | "tls"
  | "aborted"
  | "protocol";

/** A request that got no usable response. `kind` is for programs, and `message` for people. `address`: the host and port that the request was for. */
export class GuardError extends Error {
  override readonly name = "GuardError";
  constructor(
    readonly kind: GuardErrorKind,
    readonly url: string,
    message: string,
    readonly address = toAddress(url),
  ) {
    super(message);
  }
}

/** Host and port of an http or https URL; anything else stays as it is. */
export function toAddress(url: string): string {
  const { hostname, port, protocol } = (/^https?:/i.test(url) && URL.parse(url)) || {};
  return hostname ? `${hostname}:${port || (protocol === "https:" ? 443 : 80)}` : url;
}

const unreachableMessages: Record<string, string> = {
  ECONNREFUSED: "refused the connection",
  ECONNRESET: "closed the connection without a response",
  EPIPE: "closed the connection without a response",
  EHOSTUNREACH: "cannot be reached: no route to the host",
  ENETUNREACH: "cannot be reached: no route to the network",
  EADDRNOTAVAIL: "cannot be reached: the address is not available",
};

const certificateMessages: Record<string, string> = {
  CERT_HAS_EXPIRED: "it has expired",
  ERR_TLS_CERT_ALTNAME_INVALID: "it was issued for another host",
  DEPTH_ZERO_SELF_SIGNED_CERT: "it is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "it is signed by an unknown authority",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "it is signed by an unknown authority",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "it is signed by an unknown authority",
};

/** Turns an error of Node's network code into a GuardError. `hasResponse`: its headers had arrived. */
export function toGuardError(error: unknown, url: URL, hasResponse: boolean): GuardError {
  if (error instanceof GuardError) return error;
  const fail = (kind: GuardErrorKind, text: string) => new GuardError(kind, url.href, `${url.host} ${text}`);
  const { code, detail } = codeAndDetailOf(error);
  if (/^(ENOTFOUND|ENODATA|ENONAME|EAI_(NONAME|NODATA))$/.test(code))
    return new GuardError("dns", url.href, `${url.hostname} cannot be found in DNS`);
  if (/^(EAI_|ESERVFAIL|EREFUSED|ETIMEOUT|EBADNAME|EBADRESP|EFORMERR)/.test(code))
    return new GuardError("dns", url.href, `${url.hostname} could not be resolved: the DNS lookup failed (${code})`);
  if (code === "ETIMEDOUT") return fail("timeout", "did not accept the connection in time");
  if (code === "HPE_HEADER_OVERFLOW") return fail("too_large", "sent more than 64 KiB of headers");
  if (certificateMessages[code]) return fail("tls", `has an untrusted certificate: ${certificateMessages[code]}`);
  if (/^(CERT_|ERR_TLS|ERR_SSL|ERR_OSSL|UNABLE_TO|EPROTO|INVALID_CA|HOSTNAME_MISMATCH)/.test(code))
    return fail("tls", `failed the TLS handshake (${code})`);
  if (hasResponse && (code === "ECONNRESET" || code === "ERR_STREAM_PREMATURE_CLOSE"))
    return fail("protocol", "closed the connection before the response was complete");
  if (unreachableMessages[code]) return fail("unreachable", unreachableMessages[code]);
  // Codes of zlib, of Brotli (which begin with ERR__) and of zstd.
  if (/^(Z_|ERR__|ERR_BROTLI|ERR_ZSTD|ZSTD_)/.test(code))
    return fail("protocol", `sent a compressed body that is damaged or truncated (${detail})`);
  return fail("protocol", `sent a response that is not valid HTTP (${detail})`);
}

/** Code and detail of an error. For an AggregateError (all addresses failed), they come from its first part. */
function codeAndDetailOf(error: unknown): { code: string; detail: string } {
  const firstError = error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error;
  const { code, message } = (firstError ?? {}) as { code?: unknown; message?: unknown };
  return { code: typeof code === "string" ? code : "", detail: String(code || message || "unknown error") };
}
