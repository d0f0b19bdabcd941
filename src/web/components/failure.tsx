import type { ComponentChildren } from "preact";
import { ruleOf } from "../../agents/failure.ts";
import type { RunFailure } from "../../agents/remedies.ts";
import { may, type Viewer } from "../viewer.ts";
import { ButtonForm, Copyable } from "./form-parts.tsx";

/** The path of a link to this service. Only the path is used, because pages are also served at addresses other than the configured one. */
const pathOf = (url: string): string => url.replace(/^https?:\/\/[^/]+/, "");

type RemedyProps = {
  base: string;
  viewer: Viewer | undefined;
  failure: RunFailure;
  /** The run to repeat; null if repeating isn't offered. */
  runId: string | null;
};

/** Buttons for a failed run. The first button helps most, and is the primary one. */
export function RemedyButtons({ base, viewer, failure: { code, action, runAgainHelps }, runId }: RemedyProps) {
  const path = action && pathOf(action.url);
  const needed = ruleOf(code).button?.needs;
  const canAct = action !== null && (needed === undefined || may(viewer, needed));
  const link = canAct && (
    <a
      key="remedy"
      class={runAgainHelps && runId !== null ? "button" : "button main"}
      data-remedy="true"
      href={path ?? ""}
    >
      {action.label}
    </a>
  );
  const again = runId !== null && may(viewer, "run") && (
    <ButtonForm key="again" action={`${base}/runs/${runId}/rerun`} {...(runAgainHelps && { class: "main" })}>
      Run again
    </ButtonForm>
  );
  return <>{runAgainHelps ? [again, link] : [link, again]}</>;
}

type NoticeProps = RemedyProps & {
  /** Shown before the title, for example the number of failed runs. */
  lead?: ComponentChildren;
  /** Additional buttons, after the others. */
  children?: ComponentChildren;
  /** The ID of the notice on its page. */
  id?: string;
};

/** The reason why a run failed, and what to do about it. */
export const FailureNotice = ({ lead, children, id = "remedy", ...props }: NoticeProps) => {
  const { code, cause, title, detail, remedy, command } = props.failure;
  return (
    <div class="notice bad failure" role="alert" data-code={code} data-cause={cause}>
      <p>
        {lead}
        <strong>{title}.</strong> {detail}
      </p>
      <p>{remedy}</p>
      {command !== null && <Copyable id={`${id}-command`} value={command} />}
      <div class="actions">
        <RemedyButtons {...props} />
        {children}
      </div>
    </div>
  );
};
