import { type Static, Type } from "@sinclair/typebox";
import { toSentence } from "../errors.ts";
import { Nullable, OneOf } from "../schema.ts";
import { type EndCause, endCauses, type FailureCode, failureCodes, ruleOf, type StoredFailure } from "./failure.ts";

export const RunFailure = Type.Object(
  {
    code: OneOf(failureCodes, "What happened. The page /docs/failures lists all codes"),
    cause: OneOf(endCauses),
    title: Type.String({ description: "What happened, in a few words" }),
    detail: Type.String(),
    subject: Nullable(Type.String({ description: "What it is about, such as the address that is not allowed" })),
    remedy: Type.String({ description: "What to do" }),
    command: Nullable(Type.String({ description: "A setting or command that does it or shows more" })),
    action: Nullable(
      Type.Object({ label: Type.String(), url: Type.String({ format: "uri" }) }, { description: "Where to do it" }),
    ),
    runAgainHelps: Type.Boolean({ description: "Whether it can succeed if it is run again with nothing changed" }),
  },
  { title: "RunFailure", description: "Why a run has no report, and what to do" },
);
export type RunFailure = Static<typeof RunFailure>;

/** A stored failure with its remedy; null if there is none. `base`: the address of the pages, without a slash at its end. */
export function toRunFailure(base: string, run: StoredFailure & { promptId: string }): RunFailure | null {
  const { failureCause: cause, failureCode: code, failureDetail, failureSubject: subject } = run;
  if (cause === null || code === null) return null;
  return describeFailure(base, run.promptId, { code, cause, detail: failureDetail ?? "", subject });
}

/** A failure with its remedy. */
export function describeFailure(
  base: string,
  promptId: string,
  { code, cause, detail, subject }: { code: FailureCode; cause: EndCause; detail: string; subject: string | null },
): RunFailure {
  const { title, remedy, command, button, runAgain = false } = ruleOf(code);
  const fill = (text: string | undefined) =>
    text === undefined || (subject === null && text.includes("{subject}"))
      ? null
      : text.replaceAll("{subject}", subject ?? "").replace("{prompt}", promptId);
  const path = fill(button?.path);
  return {
    code,
    cause,
    title,
    detail: toSentence(detail),
    subject,
    remedy,
    command: fill(command),
    action: button && path !== null ? { label: button.label, url: base + path } : null,
    runAgainHelps: runAgain,
  };
}
