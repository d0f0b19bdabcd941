import type { EndCause, FailureCause, FailureRule } from "./failure-rule.ts";
import { serviceFailures } from "./service-failures.ts";
import { sessionFailures } from "./session-failures.ts";

export { type EndCause, endCauses, type FailureCause, failureCauses } from "./failure-rule.ts";

/** Every way in which a run ends without a report: its cause, and what to do. The table in docs/failures.md shows it. */
export const failureRules = { ...sessionFailures, ...serviceFailures } as const;

export type FailureCode = keyof typeof failureRules;
export const failureCodes = Object.keys(failureRules) as FailureCode[];

/** The codes of failures; a superseded run did not fail. */
export type FailedCode = {
  [Code in FailureCode]: (typeof failureRules)[Code]["cause"] extends FailureCause ? Code : never;
}[FailureCode];

export const failedCodes = failureCodes.filter((code): code is FailedCode => code !== "superseded");

/** What is known about a failure code: its title, remedy, and whether to try again. */
export const ruleOf = (code: FailureCode): FailureRule => failureRules[code];

/** Why a run failed: its code and cause, a sentence for people, and what it is about, such as an address. */
export type Failure = { code: FailedCode; cause: FailureCause; detail: string; subject: string | null };

/** The failure with a code. `subject`: what it is about, as its rule says. */
export const toFailure = (code: FailedCode, detail: string, subject: string | null = null): Failure => ({
  code,
  cause: failureRules[code].cause,
  detail,
  subject,
});

/** The failure columns of a run: all null without a failure. With one, only `failureSubject` may be null. */
export type StoredFailure = {
  failureCause: EndCause | null;
  failureCode: FailureCode | null;
  failureDetail: string | null;
  failureSubject: string | null;
};

/** The columns of a failed run. */
export const toFailureColumns = ({ code, cause, detail, subject }: Failure) => ({
  failureCause: cause,
  failureCode: code,
  failureDetail: detail,
  failureSubject: subject,
});

/** The `failureReason` of the API: cause, colon and sentence; null without a failure. */
export const toFailureReason = ({
  failureCause,
  failureDetail,
}: {
  failureCause: string | null;
  failureDetail: string | null;
}): string | null => (failureCause === null ? null : `${failureCause}: ${failureDetail}`);
