import { reasonOf } from "../errors.ts";
import { readTextStart } from "./text-start.ts";
import { userAgent } from "./user-agent.ts";

/** Characters of an answer that are kept. */
const maxText = 1024 * 1024;

/** A request to a URL from the operator's settings. */
export type OperatorRequest = {
  method?: "GET" | "POST";
  headers?: Record<string, string>;
  body?: string;
  signal: AbortSignal;
};

/** `dateAt`: the time on the server's clock, epoch milliseconds; null: the server didn't say. */
export type OperatorAnswer = { status: number; text: string; dateAt: number | null };

/** There was no answer. `kind`: `certificate` if the server was reached but can't prove its identity. */
export class NoAnswerError extends Error {
  constructor(
    readonly kind: "unreachable" | "certificate",
    message: string,
  ) {
    super(message);
  }
}

/** Whether the text of an error is about a certificate. */
export const isAboutCertificate = (text: string): boolean => /certificate|self.signed|CERT_|UNABLE_TO_/i.test(text);

/** Sends a request as the rest of the service does to such URLs, without following redirects. Throws NoAnswerError. */
export async function requestFromOperator(url: string, request: OperatorRequest): Promise<OperatorAnswer> {
  const { headers, signal, ...init } = request;
  try {
    const response = await fetch(url, {
      ...init,
      headers: { "user-agent": userAgent, ...headers },
      redirect: "manual",
      signal,
    });
    const date = Date.parse(response.headers.get("date") ?? "");
    return {
      status: response.status,
      text: await readTextStart(response, maxText),
      dateAt: Number.isNaN(date) ? null : date,
    };
  } catch (error) {
    if (signal.aborted) throw new NoAnswerError("unreachable", "it did not answer in time");
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    const reason = reasonOf(error).replace(/ For more information.*$/, "");
    throw new NoAnswerError(isAboutCertificate(`${code} ${reason}`) ? "certificate" : "unreachable", reason);
  }
}
