import type { Check } from "../agent.ts";
import type { DeclaredCheck } from "../task.ts";
import { toCheck } from "./session.ts";

type SuccessCheckResult = { status: Check["status"]; message: string; expected: string; quote?: string };

/** The result of a success check. `subject` identifies the check: it is the same before and after the agent. */
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
