import type { ValueError } from "@sinclair/typebox/errors";
import { type DiskFault, isBusy } from "./db/fault.ts";
import { AppError, badRequest, notFound, unavailable } from "./errors.ts";
import { invalidInput } from "./schema.ts";

/** The error of a write that failed because another process held the database for too long. */
export const databaseLocked = () =>
  unavailable("The database is locked by another process. Try again in a few seconds.");

/** The error of a URL without a route. */
export const unknownUrl = () =>
  notFound("No page or endpoint has this URL. Check the URL, or see /openapi.json for all endpoints.");

/** Turns every failure into an error that is safe to show. `code`: Elysia's, if it threw the error. Unexpected errors reveal nothing. */
export function toAppError(error: unknown, fault: DiskFault | null, code: unknown): AppError {
  if (error instanceof AppError) return error;
  if (fault === "full") return unavailable("The disk is full or read-only. Stored data can still be read.");
  if (fault === "broken") return unavailable("The disk failed. The service is restarting.");
  if (isBusy(error)) return databaseLocked();
  const internal = new AppError(
    "internal",
    "Something went wrong. The server log has the details; search it for the ID in X-Request-Id.",
  );
  if (code === "NOT_FOUND") return unknownUrl();
  if (code === "PARSE") return error instanceof Error && error.cause instanceof AppError ? error.cause : internal;
  if (code !== "VALIDATION" || !(error instanceof Error)) return internal;
  const { type, valueError } = error as { type?: string; valueError?: ValueError };
  // A part of the path, such as an ID, has an impossible form, so nothing can have this URL.
  if (type === "params") return unknownUrl();
  return valueError ? invalidInput(valueError, type ?? "request") : badRequest("The request is not valid.");
}
