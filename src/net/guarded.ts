import type { AllowRule } from "../config.ts";

/** Why a request got no answer. */
export type GuardErrorKind = "refused" | "dns" | "unreachable" | "timeout" | "too_large" | "redirect" | "tls" | "aborted" | "protocol";

/** A request that got no usable answer: `kind` for programs, `message` for people. */
export class GuardError extends Error {
  override readonly name = "GuardError";
  constructor(
    readonly kind: GuardErrorKind,
    readonly url: string,
    message: string,
  ) {
    super(message);
  }
}

export type GuardedRequest = {
  method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Whole request, redirects and body included. Default 30,000. */
  timeoutMs?: number;
  /** Of the decoded body. Default 5 MiB. */
  maxBytes?: number;
  /** Default true, at most 5, each hop checked anew. */
  followRedirects?: boolean;
};

export type GuardedResponse = {
  /** The last address, in the terms of the caller: hosts that the urlMap replaced are named by their own names. */
  url: string;
  /** Where the last request really went; null if the urlMap did not touch it. */
  mappedUrl: string | null;
  status: number;
  headers: Headers;
  body: Uint8Array;
  /** Every address on the way, the first included, the last not; in the terms of the caller. */
  redirects: string[];
  ms: number;
};

export type Guard = {
  request(url: string, init?: GuardedRequest): Promise<GuardedResponse>;
  /** The text of a body, by its byte order mark, its charset parameter, its meta tag, else UTF-8. */
  text(response: GuardedResponse): string;
  /** Where the urlMap sends an address; null if nowhere else. */
  mapped(url: string): string | null;
};

export type GuardOptions = {
  /** Private places that the operator opened. */
  allow: AllowRule[];
  urlMap?: Record<string, string>;
  userAgent: string;
  /** At once, to one host and port. Default 4. */
  maxPerHost?: number;
  now: () => number;
};

/**
 * The only way out to an address that someone gave us. http(s) only, no user info, ports 80 and 443 unless allowed, every answer of
 * the name service checked, every redirect checked anew, bounded in time, size and decompression.
 */
export function createGuard(_options: GuardOptions): Guard {
  throw new Error("not written yet");
}
