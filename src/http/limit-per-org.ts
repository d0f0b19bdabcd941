import type { OrgId } from "../context.ts";
import { AppError } from "../errors.ts";

/**
 * Limits how many responses of one kind, such as "event streams", each organization has in progress. Returns a function that counts one more
 * response. It throws rate_limited at the limit, and otherwise returns a function to call when the response ends.
 */
export function limitPerOrg(max: number, kind: string): (org: OrgId) => () => void {
  const counts = new Map<OrgId, number>();
  return (org) => {
    const count = counts.get(org) ?? 0;
    if (count >= max)
      throw new AppError("rate_limited", `The organization already has ${max} open ${kind}. Close some.`, {
        retryAfterSeconds: 60,
      });
    counts.set(org, count + 1);
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      const remaining = (counts.get(org) ?? 1) - 1;
      if (remaining > 0) counts.set(org, remaining);
      else counts.delete(org);
    };
  };
}
