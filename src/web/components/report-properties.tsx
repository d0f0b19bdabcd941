import type { ComponentChildren } from "preact";
import { reportStatuses } from "../../db/tables.ts";
import { agentLabel, formatTime, titleOf } from "../../reports/labels.ts";
import type { Report } from "../../reports/schema.ts";
import { type ShareLink, shareDays } from "../../shares/shares.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";
import { Fact } from "./figures.tsx";

/** Data of the report sidebar. */
export type Side = {
  /** URL of the session page; null if the events cannot be read. `notice`: the reason, if any. */
  session: string | null;
  notice: string | null;
  /** Share links, for those who may create them. `made`: the link just created, to copy. */
  shares: ShareLink[];
  made?: string;
  /** Id of the link that the form creates. */
  nextId?: string;
};

type Props = { site: Site; report: Report; viewer?: Viewer; side: Side };

/** Buttons to open the session and to copy or download the report. */
export function ReportActions({ site, report, viewer, side }: Props) {
  const path = `${site.base}/reports/${report.slug}`;
  return (
    <p class="acts">
      {side.session && (
        <a class="button main" href={side.session}>
          View session
        </a>
      )}
      {viewer && (
        <>
          <button type="button" data-copy-from={`${path}.md`}>
            Copy as Markdown
          </button>
          <a class="button" href={`${path}.json`}>
            View JSON
          </a>
        </>
      )}
    </p>
  );
}

/** Sidebar of a report: run details, status and share links. */
export function Properties({ site, report, viewer, side }: Props) {
  const { run, agent, methodology, prompt, task, status, slug } = report;
  const replaced = Object.entries(run.urlMap);
  const path = `${site.base}/reports/${slug}`;
  const statusForm = `${path}/status`;
  return (
    <aside class="properties" aria-label="About this report">
      <dl class="facts">
        {viewer && (
          <Fact name="Prompt">
            <a href={`${site.base}/prompts/${prompt.id}`}>{titleOf(task)}</a>
          </Fact>
        )}
        <Fact name="Agent">{agentLabel(agent)}</Fact>
        <Fact name="Started">{formatTime(run.startedAt ?? run.createdAt)}</Fact>
        <Fact name="Completed">{formatTime(run.completedAt ?? report.createdAt)}</Fact>
        {viewer && (
          <Fact name="Run">
            <a href={`${site.base}/runs/${run.runId}`}>Attempt {run.attempt}</a>
          </Fact>
        )}
        {side.notice && <Fact name="Session">{side.notice}</Fact>}
        <Fact name="Methodology">
          <a href={`${site.base}/docs/scoring`}>{methodology.id}</a> <code>{methodology.hash.slice(0, 8)}</code>
          {methodology.judge && `, judged by ${methodology.judge}`}
        </Fact>
        {replaced.length > 0 && (
          <Fact name="Replaced hosts">{replaced.map(([from, to]) => `${from} → ${to}`).join(", ")}</Fact>
        )}
      </dl>
      {may(viewer, "publish") && (
        <Group title="Status">
          <form class="acts" method="post" action={statusForm}>
            {reportStatuses.map((each) => (
              <button key={each} type="submit" name="status" value={each} aria-pressed={each === status}>
                {statusActs[each]}
              </button>
            ))}
          </form>
        </Group>
      )}
      {may(viewer, "share") && <Sharing path={path} side={side} />}
    </aside>
  );
}

const statusActs = { published: "Published", draft: "Draft", archived: "Archived" } as const;

const Group = ({ title, children }: { title: string; children: ComponentChildren }) => (
  <section>
    <h2>{title}</h2>
    {children}
  </section>
);

const formatDay = (iso: string) => formatTime(iso).slice(0, 10);

const Sharing = ({ path, side: { shares, made, nextId } }: { path: string; side: Side }) => (
  <Group title="Share">
    {made && (
      <div class="notice made" role="status">
        <p>Copy this link now. You won’t be able to see it again.</p>
        <code id="made">{made}</code>
        <button type="button" data-copy="#made">
          Copy link
        </button>
      </div>
    )}
    <details open={made !== undefined}>
      <summary>Create public link</summary>
      <form method="post" action={`${path}/shares`}>
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
        <button type="submit">Create link</button>
      </form>
    </details>
    {shares.length > 0 && (
      <ul class="shares">
        {shares.map(({ id, state, withSession, createdAt, expiresAt }) => (
          <li key={id}>
            <span>
              {withSession ? "Report and session" : "Report"}, created {formatDay(createdAt)}
              <small>{state === "active" ? `Expires ${formatTime(expiresAt)}` : state}</small>
            </span>
            {state === "active" && (
              <form method="post" action={`${path}/shares/${id}/revoke`}>
                <button type="submit" class="bad" aria-label={`Revoke the link created ${formatTime(createdAt)}`}>
                  Revoke
                </button>
              </form>
            )}
          </li>
        ))}
      </ul>
    )}
  </Group>
);
