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

/** What is wrong with one input; `field` empty: with the whole. `problem` as in `AppError`, or a sentence without a field. */
type Problem = { field: string; problem: string };

type ErrorDetails = {
  /** The input that is wrong, as a dotted path: `additionalUrls.0.url`. */
  field?: string;
  /** What is wrong with it, without its name: `must be an absolute URL`. */
  problem?: string;
  /** If several inputs are wrong: each of them, the first one included. */
  problems?: readonly Problem[];
  retryAfterSeconds?: number;
};

/** An error meant for the caller: `code` is stable, `detail` says in full sentences what happened and what to do. */
export class AppError extends Error {
  override readonly name = "AppError";
  readonly field: string | undefined;
  readonly problem: string | undefined;
  readonly problems: readonly Problem[];
  readonly retryAfterSeconds: number | undefined;
  constructor(
    readonly code: ErrorCode,
    readonly detail: string,
    { field, problem, problems, retryAfterSeconds }: ErrorDetails = {},
  ) {
    super(`${code}: ${detail}`);
    this.field = field;
    this.problem = problem;
    this.problems = problems ?? (field !== undefined && problem !== undefined ? [{ field, problem }] : []);
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

/** Makes all checks. Throws one bad_request that names everything they refuse, once for each field, and rethrows every other error. */
export function checkAll(...checks: readonly (() => void)[]): void {
  const refusals = new Map<string, AppError>();
  for (const check of checks)
    try {
      check();
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== "bad_request") throw error;
      const key = error.field ?? error.detail;
      if (!refusals.has(key)) refusals.set(key, error);
    }
  const [first, ...others] = refusals.values();
  if (!first) return;
  if (others.length === 0) throw first;
  const all = [first, ...others];
  throw new AppError("bad_request", all.map(({ detail }) => detail).join(" "), {
    field: first.field,
    problem: first.problem,
    problems: all.flatMap(({ problems, detail }) =>
      problems.length > 0 ? problems : [{ field: "", problem: detail }],
    ),
  });
}

/** Why something was thrown, in words. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** A detail as a sentence: capitalized unless it begins with a URL, with a full stop. */
export function toSentence(detail: string): string {
  const capitalized = /^\S*:\/\//.test(detail) ? detail : detail.charAt(0).toUpperCase() + detail.slice(1);
  return capitalized === "" || /[.!?…]$/.test(capitalized) ? capitalized : `${capitalized}.`;
}
