import { AppError } from "../errors.ts";
import { privateAnswer, statusOf } from "./answer.ts";
import { toPage } from "./components/layout.tsx";
import { sentenceOf } from "./pages/error.tsx";

/** A private HTML page. */
export const pageAnswer = (made: Parameters<typeof toPage>[0]) => privateAnswer("html", toPage(made));

/** Renders a form again with its error. Rethrows unexpected errors. */
export function formError(error: unknown, make: (wrong: string) => Parameters<typeof toPage>[0]): Response {
  if (!(error instanceof AppError)) throw error;
  const wait = error.retryAfterSeconds === undefined ? undefined : { "retry-after": String(error.retryAfterSeconds) };
  return privateAnswer("html", toPage(make(sentenceOf(error.detail))), statusOf(error), wait);
}
