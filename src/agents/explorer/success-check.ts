import type { Check } from "../agent.ts";
import type { DeclaredCheck } from "../task.ts";
import { toCheck } from "./session.ts";

type SuccessCheckResult = { status: Check["status"]; message: string; expected: string; quote?: string };

/**
 * The result of a success check. A check runs before the agent starts and after it ends. `subject` identifies the check in both results.
 * `invariant`: the check counts even if it passed before.
 */
export const toSuccessCheck = (
  { url = "", invariant }: DeclaredCheck,
  subject: string,
  { status, message, expected, quote }: SuccessCheckResult,
): Check =>
  toCheck({
    id: "declared",
    group: "declared",
    status,
    weight: 10,
    subject,
    url,
    message,
    fix: status === "fail" ? `The prompt expects ${expected}.` : null,
    quote: quote || null,
    ...(invariant && { invariant }),
  });
