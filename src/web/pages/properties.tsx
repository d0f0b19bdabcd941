import type { ComponentChildren } from "preact";
import { reportStatuses } from "../../db/tables.ts";
import type { Report } from "../../reports/schema.ts";
import { type ShareLink, shareDays } from "../../shares/shares.ts";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";
import { agentWords, timeWords, titleOf } from "../words.ts";
import { Fact } from "./figures.tsx";

/** What stands beside a report. */
export type Side = {
  /** The address of the page with its events; null if they cannot be read. `notice`: why, if that is to be said. */
  session: string | null;
  notice: string | null;
  /** Share links, for who may make some. `made`: the one that was made just now, to be copied. */
  shares: ShareLink[];
  made?: string;
  /** Of the one that the form makes. */
  nextId?: string;
};

type Props = { site: Site; report: Report; viewer?: Viewer; side: Side };

/** Where a reader of a report goes from it, and what they take along. */
export function Acts({ site, report, viewer, side }: Props) {
  const path = `${site.base}/reports/${report.slug}`;
  return (
    <p class="acts">
      {side.session && (
        <a class="button main" href={side.session}>
          Open the session
        </a>
      )}
      {viewer && (
        <>
          <button type="button" data-copy-from={`${path}.md`}>
            Copy as Markdown
          </button>
          <a class="button" href={`${path}.json`}>
            JSON
          </a>
        </>
      )}
    </p>
  );
}

/** What a report is about, how it was made, and who may read it. */
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
        <Fact name="Agent">{agentWords(agent)}</Fact>
        <Fact name="Started">{timeWords(run.startedAt ?? run.createdAt)}</Fact>
        <Fact name="Finished">{timeWords(run.completedAt ?? report.createdAt)}</Fact>
        {viewer && (
          <Fact name="Run">
            <a href={`${site.base}/runs/${run.runId}`}>attempt {run.attempt}</a>
          </Fact>
        )}
        {side.notice && <Fact name="Session">{side.notice}</Fact>}
        <Fact name="Method">
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

const dayWords = (iso: string) => timeWords(iso).slice(0, 10);

const Sharing = ({ path, side: { shares, made, nextId } }: { path: string; side: Side }) => (
  <Group title="Share">
    {made && (
      <div class="notice made" role="status">
        <p>Copy this link now: it is not shown again.</p>
        <code id="made">{made}</code>
        <button type="button" data-copy="#made">
          Copy link
        </button>
      </div>
    )}
    <details open={made !== undefined}>
      <summary>A link for people without an account</summary>
      <form method="post" action={`${path}/shares`}>
        <input type="hidden" name="id" value={nextId} />
        <label>
          Good for
          <select name="days">
            {shareDays.map((days) => (
              <option key={days} value={days} selected={days === 7}>
                {days === 1 ? "1 day" : `${days} days`}
              </option>
            ))}
          </select>
        </label>
        <label class="check">
          <input type="checkbox" name="session" value="1" /> With the session
        </label>
        <button type="submit">Make a link</button>
      </form>
    </details>
    {shares.length > 0 && (
      <ul class="shares">
        {shares.map(({ id, state, withSession, createdAt, expiresAt }) => (
          <li key={id}>
            <span>
              {withSession ? "Report and session" : "Report"}, made {dayWords(createdAt)}
              <small>{state === "active" ? `until ${timeWords(expiresAt)}` : state}</small>
            </span>
            {state === "active" && (
              <form method="post" action={`${path}/shares/${id}/revoke`}>
                <button type="submit" class="bad" aria-label={`Revoke the link of ${timeWords(createdAt)}`}>
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
