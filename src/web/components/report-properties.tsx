import { reportStatuses } from "../../db/tables/reports.ts";
import { agentLabel, judgeText, titleOf } from "../../reports/labels.ts";
import type { Report } from "../../reports/schema.ts";
import { type ShareLink, shareDays } from "../../shares/shares.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";
import { Fact } from "./figures.tsx";
import { DangerButton, Submit } from "./form-parts.tsx";
import { addressText } from "./layout.tsx";
import { Day, Time, useTime } from "./when.tsx";

/** Data that is shown with a report but isn't part of it. */
export type ReportExtras = {
  /** URL of the session page; null if the events cannot be read. `notice`: the reason, if there is one. */
  session: string | null;
  notice: string | null;
  /** Share links, for viewers who may create them. `newLink`: the link that was just created, to copy. */
  shares: ShareLink[];
  newLink?: string;
  /** ID of the link that the form will create. If the form is submitted twice, it creates only one link. */
  nextId?: string;
  /** URL of the comparison with earlier evaluations. */
  comparisonHref?: string | null;
};

type Props = { site: Site; report: Report; viewer?: Viewer; extras: ReportExtras };

/** Buttons of a report: the session, a comparison, the fixes for a coding agent, and a link to share. */
export function ReportActions({ site, report, viewer, extras }: Props) {
  const path = `${site.base}/reports/${report.slug}`;
  return (
    <div class="acts report-acts">
      {extras.session && (
        <a class="button" href={extras.session}>
          View session
        </a>
      )}
      {viewer && extras.comparisonHref && (
        <a class="button" href={extras.comparisonHref}>
          Compare with previous
        </a>
      )}
      <button type="button" data-copy="#fix-brief">
        Copy for your agent
      </button>
      {may(viewer, "share") && <Sharing path={path} extras={extras} />}
    </div>
  );
}

/** Details of the run behind a report, its status and its other formats. */
export function Properties({ site, report, viewer, extras }: Props) {
  const { run, agent, methodology, prompt, task, status, slug, judge } = report;
  const replacedHosts = Object.entries(run.urlMap);
  const path = `${site.base}/reports/${slug}`;
  return (
    <div class="properties">
      <dl class="facts">
        {viewer && (
          <Fact name="Prompt">
            <a href={`${site.base}/prompts/${prompt.id}`}>{titleOf(task)}</a>
          </Fact>
        )}
        <Fact name="Agent">{agentLabel(agent)}</Fact>
        <Fact name="Started">
          <Time at={run.startedAt ?? run.createdAt} />
        </Fact>
        <Fact name="Completed">
          <Time at={run.completedAt ?? report.createdAt} />
        </Fact>
        {viewer && (
          <Fact name="Run">
            <a href={`${site.base}/runs/${run.runId}`}>Attempt {run.attempt}</a>
          </Fact>
        )}
        {extras.notice && <Fact name="Session">{extras.notice}</Fact>}
        <Fact name="Methodology">
          <a href={`${site.base}/docs/scoring`}>{methodology.id}</a> <code>{methodology.hash.slice(0, 8)}</code>
        </Fact>
        {judge && <Fact name="Judge">{judgeText(judge)}</Fact>}
        {replacedHosts.length > 0 && (
          <Fact name="Replaced hosts">
            {replacedHosts.map(([from, to]) => `${from} → ${addressText(to)}`).join(", ")}
          </Fact>
        )}
      </dl>
      {viewer && (
        <p class="acts">
          <button type="button" data-copy-from={`${path}.md`}>
            Copy as Markdown
          </button>
          <a class="button" href={`${path}.md`}>
            View Markdown
          </a>
          <a class="button" href={`${path}.json`}>
            View JSON
          </a>
        </p>
      )}
      {may(viewer, "publish") && (
        <form class="acts" method="post" action={`${path}/status`}>
          {reportStatuses.map((each) => (
            <button key={each} type="submit" name="status" value={each} aria-pressed={each === status}>
              {statusLabels[each]}
            </button>
          ))}
        </form>
      )}
      {may(viewer, "delete") && <DangerButton action={`${path}/delete`}>Delete</DangerButton>}
    </div>
  );
}

const statusLabels = { published: "Published", draft: "Draft", archived: "Archived" } as const;

const Expiry = ({ at }: { at: string }) => (
  <>
    Expires <Time at={at} />
  </>
);

const RevokeButton = ({ createdAt }: { createdAt: string }) => (
  <button type="submit" class="bad" aria-label={`Revoke the link created ${useTime()(createdAt)}`}>
    Revoke
  </button>
);

const Sharing = ({ path, extras: { shares, newLink, nextId } }: { path: string; extras: ReportExtras }) => (
  <details class="act share" open={newLink !== undefined}>
    <summary>Share</summary>
    {newLink && (
      <div class="notice created-link" role="status">
        <p>Copy this link now. You won’t be able to see it again.</p>
        <code id="made">{newLink}</code>
        <button type="button" data-copy="#made">
          Copy link
        </button>
      </div>
    )}
    <form id="share" method="post" action={`${path}/shares`}>
      <p class="hint">Anyone with the link can read the report, without signing in.</p>
      <input type="hidden" name="id" value={nextId} />
      <label>
        Expires in
        <select name="days">
          {shareDays.map((days) => (
            <option key={days} value={days} selected={days === 7}>
              {days === 1 ? "1 day" : `${days} days`}
            </option>
          ))}
        </select>
      </label>
      <label class="check">
        <input type="checkbox" name="session" value="1" /> Include session
      </label>
      <Submit>Create link</Submit>
    </form>
    {shares.length > 0 && (
      <ul class="shares">
        {shares.map(({ id, state, withSession, createdAt, expiresAt }) => (
          <li key={id}>
            <span>
              {withSession ? "Report and session" : "Report"}, created <Day at={createdAt} />
              <small>{state === "active" ? <Expiry at={expiresAt} /> : state}</small>
            </span>
            {state === "active" && (
              <form method="post" action={`${path}/shares/${id}/revoke`}>
                <RevokeButton createdAt={createdAt} />
              </form>
            )}
          </li>
        ))}
      </ul>
    )}
  </details>
);
