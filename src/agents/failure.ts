import { failureCauses } from "./endings.ts";

/** Why a run ended without a report: it failed, or a newer run replaced it. */
export const endCauses = [...failureCauses, "superseded"] as const;
export type EndCause = (typeof endCauses)[number];

/** The failure columns of a run or regrade. Both are null, or neither is. */
export type StoredFailure = {
  failureCause: EndCause | null;
  failureDetail: string | null;
};

/** The `failureReason` of the API: cause, colon and sentence; null without a failure. */
export const toFailureReason = ({ failureCause, failureDetail }: StoredFailure): string | null =>
  failureCause === null ? null : `${failureCause}: ${failureDetail}`;
