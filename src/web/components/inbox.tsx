import type { ComponentChildren } from "preact";
import { shortUrl, withSign } from "../../grading/text.ts";
import type { FailedRuns } from "../../inbox/failed-runs.ts";
import { itemSize, itemSubject, itemText } from "../../inbox/labels.ts";
import type { InboxItem, ScoreChange } from "../../inbox/schema.ts";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { Sparkline } from "./charts.tsx";
import { RemedyButtons } from "./failure.tsx";
import { foreignText } from "./layout.tsx";
import { Day, When } from "./when.tsx";

/** The actions of a viewer on a line. `members`: the people that it can be assigned to. */
export type InboxActions = { members: { name: string; email: string }[] };

type LineProps = { site: Site; viewer: Viewer; now: number; item: InboxItem; actions: InboxActions | null };

/** One line for each problem or improvement: its size, what it is and since when, where it is, and what to do. */
export const InboxList = ({ items, ...props }: Omit<LineProps, "item"> & { items: InboxItem[] }) => (
  <ul class="inbox">
    {items.map((item) => (
      <li
        key={item.id}
        data-kind={item.kind}
        data-item={item.id}
        data-code={item.kind === "runs_failed" ? item.failure.code : undefined}
        data-cause={item.kind === "runs_failed" ? item.failure.cause : undefined}
      >
        <Line {...{ ...props, item }} />
      </li>
    ))}
  </ul>
);

function Line({ site, viewer, now, item, actions }: LineProps) {
  const { name, text, where, button } = contentOf(item, site, viewer, now);
  return (
    <>
      <strong class={item.kind === "score_rose" ? "size good" : "size bad"}>{itemSize(item)}</strong>
      <div class="what">
        <strong>{name}</strong>
        <p class="soft">{text}</p>
        <Mark item={item} now={now} />
      </div>
      <div class="trend">
        {"scores" in item && item.scores.length > 1 && <Sparkline scores={item.scores} subject={item.prompt.title} />}
      </div>
      <div class="where soft">{where}</div>
      <div class="do">
        {button}
        {actions && <ItemForms {...{ site, item, actions }} />}
      </div>
    </>
  );
}

/** The content of a line. `where`: shown beside the text, for example the page, the last success or a command. */
type LineContent = Record<"name" | "text" | "button", ComponentChildren> & { where?: ComponentChildren };

const ButtonLink = ({ href, isMain = false, children }: { href: string; isMain?: boolean; children: string }) => (
  <a class={isMain ? "button main" : "button"} href={href}>
    {children}
  </a>
);

/** What is wrong, and since when: with `now` as a duration, otherwise as a day. */
const TextSince = ({ item, now }: { item: InboxItem; now?: number }) => (
  <>
    Since {now === undefined ? <Day at={item.since} /> : <When at={item.since} now={now} />}: {itemText(item)}
  </>
);

/** The path where failed runs are shown. A single run has its own page. Several prompts together have no list of their own. */
function failedRunsPath({ failed, runId, prompt, agent, otherPrompts }: FailedRuns): string {
  if (failed === 1) return `/runs/${runId}`;
  const ofOnePrompt = `&promptId=${prompt.id}&agent=${encodeURIComponent(agent)}`;
  return `/runs?status=failed${otherPrompts.length > 0 ? "" : ofOnePrompt}`;
}

function contentOf(item: InboxItem, { base }: Site, viewer: Viewer, now: number): LineContent {
  const defaultContent = { name: itemSubject(item), text: <TextSince item={item} now={now} /> };
  switch (item.kind) {
    case "score_fell":
    case "score_rose":
      return scoreContent(item, base);
    case "runs_failed":
      return failedRunsContent(item, base, viewer, now);
    case "destination_failing": {
      const { destination } = item;
      return {
        name: (
          <>
            {itemSubject(item)} <span class="pill">{destination.kind}</span>
          </>
        ),
        text: <TextSince item={item} />,
        button: <ButtonLink href={`${base}/settings/notifications/${destination.id}`}>Open destination</ButtonLink>,
      };
    }
    case "budget_spent":
      return {
        name: itemSubject(item),
        text: itemText(item),
        button: (
          <ButtonLink href={item.budget === null ? `${base}/settings` : `${base}/spending#budgets`}>
            Change budget
          </ButtonLink>
        ),
      };
    case "schedule_paused":
      return {
        name: <SubjectLink item={item} base={base} />,
        text: <TextSince item={item} />,
        button: <ButtonLink href={`${base}/prompts/${item.prompt.id}`}>Open prompt</ButtonLink>,
      };
    case "basis_changed":
      return {
        name: <SubjectLink item={item} base={base} />,
        text: <TextSince item={item} />,
        button: (
          <>
            <ButtonLink href={`${base}/prompts/${item.prompt.id}/edit`}>Edit prompt</ButtonLink>
            <a href={`${base}/runs/${item.runId}`}>Open run</a>
          </>
        ),
      };
    case "false_alarms":
      return {
        name: <SubjectLink item={item} base={base} />,
        text: <TextSince item={item} />,
        button: <ButtonLink href={`${base}/experiments/${item.experimentId}`}>Open comparison</ButtonLink>,
      };
    case "calibration_worse":
      return {
        ...defaultContent,
        name: (
          <a class="plain" href={`${base}/calibration#${item.calibrationId}`}>
            {itemSubject(item)}
          </a>
        ),
        button: <ButtonLink href={`${base}/calibration`}>Open calibration</ButtonLink>,
      };
    case "all_schedules_paused":
      return { ...defaultContent, button: <ButtonLink href={`${base}/schedules`}>Open schedules</ButtonLink> };
    case "secrets_unreadable":
      return {
        name: itemSubject(item),
        text: itemText(item),
        button: (
          <ButtonLink href={`${base}/settings/${item.modelKeys > 0 ? "models" : "notifications"}`}>
            Open settings
          </ButtonLink>
        ),
      };
    case "backup_failing":
      return {
        ...defaultContent,
        where:
          item.lastBackupAt === null ? (
            "No backup yet"
          ) : (
            <>
              Last backup <When at={item.lastBackupAt} now={now} />
            </>
          ),
        button: <ButtonLink href={`${base}/docs/operations#schedule-backups`}>How to fix it</ButtonLink>,
      };
    case "runs_paused":
      return { ...defaultContent, button: <ButtonLink href={`${base}/runs?status=pending`}>Open runs</ButtonLink> };
    case "check_failed":
      return {
        ...defaultContent,
        where: item.command === null ? null : <code>{item.command}</code>,
        button: <ButtonLink href={`${base}/docs/doctor#causes-and-remedies`}>How to fix it</ButtonLink>,
      };
    case "worker_away":
      return { ...defaultContent, button: <ButtonLink href={`${base}/settings/workers`}>Open workers</ButtonLink> };
    case "runs_waiting":
      return { ...defaultContent, button: <ButtonLink href={`${base}/runs/${item.runId}`}>Open run</ButtonLink> };
  }
}

const SubjectLink = ({ item, base }: { item: InboxItem & { prompt: { id: string } }; base: string }) => (
  <a class="plain" href={`${base}/prompts/${item.prompt.id}`}>
    {itemSubject(item)}
  </a>
);

type PromptAndAgentProps = { prompt: { id: string; title: string }; agent: string; base: string };

const PromptAndAgent = ({ prompt, agent, base }: PromptAndAgentProps) => (
  <>
    <a class="plain" href={`${base}/prompts/${prompt.id}`}>
      <span {...foreignText}>{prompt.title}</span>
    </a>{" "}
    <span class="pill">{agent}</span>
  </>
);

function failedRunsContent(
  item: InboxItem & { kind: "runs_failed" },
  base: string,
  viewer: Viewer,
  now: number,
): LineContent {
  const { failure } = item;
  return {
    name: (
      <>
        <PromptAndAgent {...item} base={base} />
        {item.otherPrompts.map(({ id, title }) => (
          <span key={id}>
            ,{" "}
            <a class="plain" href={`${base}/prompts/${id}`}>
              {title}
            </a>
          </span>
        ))}
      </>
    ),
    text: (
      <>
        <TextSince item={item} /> {failure.command !== null && <code>{failure.command}</code>}
      </>
    ),
    where: item.lastReportAt && (
      <>
        Last report <When at={item.lastReportAt} now={now} />
      </>
    ),
    button: (
      <>
        <RemedyButtons {...{ base, viewer, failure }} runId={failure.runAgainHelps ? item.runId : null} />
        <a href={base + failedRunsPath(item)}>{item.failed === 1 ? "Open run" : "Open runs"}</a>
      </>
    ),
  };
}

function scoreContent(item: ScoreChange, base: string): LineContent {
  const { cause, delta } = item;
  const gain = delta < 0 ? (cause?.expectedGain ?? 0) : 0;
  return {
    name: <PromptAndAgent {...item} base={base} />,
    text: <TextSince item={item} />,
    where: cause?.url && (
      <>
        {shortUrl(cause.url)}
        {cause.line !== null && `, line ${cause.line}`}
        {gain > 0 && (
          <>
            <br />
            Fix: {withSign(gain)} points
          </>
        )}
      </>
    ),
    button: (
      <ButtonLink href={`${base}/prompts/${item.prompt.id}/why`} isMain={item.kind === "score_fell"}>
        See why
      </ButtonLink>
    ),
  };
}

/** Who is assigned to an item, and until when the item is hidden. */
const Mark = ({ item: { assignee, snoozedUntil, markedBy, markedAt }, now }: { item: InboxItem; now: number }) =>
  markedAt !== null && (assignee !== null || snoozedUntil !== null) ? (
    <p class="soft">
      {assignee !== null && <>Assigned to {assignee}. </>}
      {snoozedUntil !== null && Date.parse(snoozedUntil) > now && (
        <>
          Snoozed until <Day at={snoozedUntil} />.{" "}
        </>
      )}
      {markedBy}, <When at={markedAt} now={now} />
    </p>
  ) : null;

const snoozeDays = { 1: "1 day", 7: "1 week", 30: "30 days" };

type FormsProps = { site: Site; item: InboxItem; actions: InboxActions };

const ItemForms = ({ site: { base }, item, actions: { members } }: FormsProps) => (
  <details class="marks">
    <summary>Snooze or assign</summary>
    <form method="post" action={`${base}/inbox/${item.id}`}>
      <label>
        Snooze
        <select name="days">
          <option value="">{item.snoozedUntil === null ? "No" : "Keep"}</option>
          {Object.entries(snoozeDays).map(([days, label]) => (
            <option key={days} value={days}>
              {label}
            </option>
          ))}
        </select>
      </label>
      <label>
        Assignee
        <select name="assignee">
          <option value="">Nobody</option>
          {members.map(({ name, email }) => (
            <option key={email} value={email} selected={email === item.assignee}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <button type="submit">Save</button>
    </form>
  </details>
);
