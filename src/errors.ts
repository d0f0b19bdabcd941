/** Every error that a caller may see, with its HTTP status. */
export const errorStatus = {
  bad_request: 400,
  missing_template_vars: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  too_large: 413,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
} as const;

export type ErrorCode = keyof typeof errorStatus;

/** An error meant for the caller: `code` is stable, `detail` is one sentence that says what to do. */
export class AppError extends Error {
  override readonly name = "AppError";
  constructor(
    readonly code: ErrorCode,
    readonly detail: string,
    readonly retryAfterSeconds?: number,
  ) {
    super(`${code}: ${detail}`);
  }
}

/** A setting that cannot be used; `message` names it and says what would be right. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

export const badRequest = (detail: string) => new AppError("bad_request", detail);
export const notFound = (detail: string) => new AppError("not_found", detail);
export const conflict = (detail: string) => new AppError("conflict", detail);
/** What cannot be done now, and may be in five seconds. */
export const unavailable = (detail: string) => new AppError("unavailable", detail, 5);
