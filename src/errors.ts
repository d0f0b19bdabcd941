/** Every error that a caller may see, with its HTTP status. */
export const errorStatus = {
  bad_request: 400,
  missing_template_vars: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  too_large: 413,
  unsupported_media_type: 415,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
} as const;

export type ErrorCode = keyof typeof errorStatus;

type Extra = {
  /** The input that is wrong, as a dotted path: `additionalUrls.0.url`. */
  field?: string;
  /** What is wrong with it, without its name: `must be an absolute URL`. */
  problem?: string;
  retryAfterSeconds?: number;
};

/** An error meant for the caller: `code` is stable, `detail` says in full sentences what happened and what to do. */
export class AppError extends Error {
  override readonly name = "AppError";
  readonly field: string | undefined;
  readonly problem: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  constructor(
    readonly code: ErrorCode,
    readonly detail: string,
    { field, problem, retryAfterSeconds }: Extra = {},
  ) {
    super(`${code}: ${detail}`);
    this.field = field;
    this.problem = problem;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** An invalid setting; `message` names it and lists the valid values. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

export const badRequest = (detail: string) => new AppError("bad_request", detail);
export const notFound = (detail: string) => new AppError("not_found", detail);
export const conflict = (detail: string) => new AppError("conflict", detail);
/** For failures that may be over in five seconds. */
export const unavailable = (detail: string) => new AppError("unavailable", detail, { retryAfterSeconds: 5 });

/** A bad_request about one input: `problem` completes "Invalid FIELD: …", without a period. */
export const invalidField = (field: string, problem: string) =>
  new AppError("bad_request", `Invalid ${field}: ${problem}.`, { field, problem });

/** Why something was thrown, in words. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
