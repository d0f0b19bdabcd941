import { count } from "../../grading/text.ts";
import { type FailureGroup, type QueueOverview, QueuePauseInput } from "../../queue/schema.ts";
import { List } from "../components/figures.tsx";
import { Submit } from "../components/form-parts.tsx";
import { SchemaField, SchemaForm } from "../components/schema-form.tsx";
import { When } from "../components/when.tsx";
import type { Site } from "../site.ts";
import { SettingsFrame, type SettingsProps } from "./settings.tsx";

export type QueuePartProps = { site: Site; queue: QueueOverview; failures: FailureGroup[]; now: number };

type Props = Omit<SettingsProps, "mayChange"> & QueuePartProps;

/** The queue of all organizations, for operators. It updates live. */
export function QueuePage({ queue, failures, now, ...frame }: Props) {
  const { site, viewer, typedValues = new URLSearchParams({ kind: "agent" }), formError } = frame;
  return (
    <SettingsFrame {...frame} path="/settings/queue">
      <div hx-sse:connect={`${site.base}/settings/queue/live?org=${viewer.org}`} hx-swap="innerMorph">
        <QueuePart {...{ site, queue, failures, now }} />
      </div>
      <SchemaForm
        schema={QueuePauseInput}
        values={typedValues}
        formError={formError}
        action={`${site.base}/settings/queue/pauses`}
      >
        <h2>Pause</h2>
        <p class="muted">New runs wait until you resume them. Running ones end as usual.</p>
        <SchemaField
          name="kind"
          label="What"
          options={[
            ["agent", "Agent"],
            ["organization", "Organization"],
          ]}
        />
        <SchemaField name="subject" label="Name" required placeholder="explorer" />
        <SchemaField name="reason" label="Reason" hint="Shown to everyone whose runs wait." />
        <Submit>Pause</Submit>
      </SchemaForm>
    </SettingsFrame>
  );
}

/** The part of the page that updates live. */
export const QueuePart = ({ site: { base }, queue, failures, now }: QueuePartProps) => (
  <>
    <QueueSummary queue={queue} now={now} />
    <Pauses pauses={queue.pauses} now={now} />
    <Groups {...{ base, now }} kind="organization" title="Organizations" groups={queue.organizations.map(toOrgGroup)} />
    <Groups {...{ base, now }} kind="agent" title="Agents" groups={queue.agents.map(toAgentGroup)} />
    {queue.workers.length > 0 && <Workers workers={queue.workers} />}
    <Failures {...{ base, failures, now }} />
  </>
);

const QueueSummary = ({ queue, now }: { queue: QueueOverview; now: number }) => (
  <p>
    {count(queue.waiting, "run")} waiting, {queue.delayed} to be retried, {queue.paused} paused, {queue.running}{" "}
    running. {queue.failing > 0 && `${count(queue.failing, "unfinished run")} failed before. `}
    {queue.oldestWaitingAt && (
      <>
        The oldest has waited since <When at={queue.oldestWaitingAt} now={now} />.{" "}
      </>
    )}
    <span class="muted">
      Notifications: {queue.deliveries.waiting} waiting, {queue.deliveries.delayed} to be retried.
    </span>
  </p>
);

type Group = Omit<QueueOverview["agents"][number], "agent"> & { subject: string; name: string };

const toOrgGroup = ({ id, ...group }: QueueOverview["organizations"][number]): Group => ({ ...group, subject: id });
const toAgentGroup = ({ agent, ...group }: QueueOverview["agents"][number]): Group => ({
  ...group,
  subject: agent,
  name: agent,
});

type GroupsProps = { base: string; kind: "organization" | "agent"; title: string; groups: Group[]; now: number };

const Groups = ({ base, kind, title, groups, now }: GroupsProps) => (
  <section aria-label={title}>
    <h2>{title}</h2>
    {groups.length === 0 ? (
      <p class="muted">No unfinished runs.</p>
    ) : (
      <List
        label={title}
        isStacked
        labels={["Name", "Oldest waiting"]}
        numbers={["Waiting", "To be retried", "Paused", "Running", "Failed before", "Actions"]}
      >
        {groups.map(({ subject, name, isPaused, waiting, delayed, paused, running, failing, oldestWaitingAt }) => (
          <tr key={subject}>
            <th scope="row">
              {name} {isPaused && <span class="pill">paused</span>}
            </th>
            <td data-label="Oldest waiting">{oldestWaitingAt ? <When at={oldestWaitingAt} now={now} /> : "–"}</td>
            <td class="number" data-label="Waiting">
              {waiting}
            </td>
            <td class="number" data-label="To be retried">
              {delayed}
            </td>
            <td class="number" data-label="Paused">
              {paused}
            </td>
            <td class="number" data-label="Running">
              {running}
            </td>
            <td class="number" data-label="Failed before">
              {failing}
            </td>
            <td class="number">
              <PauseButton {...{ base, kind, subject, name, isPaused }} />
            </td>
          </tr>
        ))}
      </List>
    )}
  </section>
);

type PauseButtonProps = { base: string; kind: string; subject: string; name: string; isPaused: boolean };

const PauseButton = ({ base, kind, subject, name, isPaused }: PauseButtonProps) => (
  <form class="inline" method="post" action={`${base}/settings/queue/${isPaused ? "resume" : "pauses"}`}>
    <input type="hidden" name="kind" value={kind} />
    <input type="hidden" name="subject" value={subject} />
    <button type="submit" aria-label={`${isPaused ? "Resume" : "Pause"} ${name}`}>
      {isPaused ? "Resume" : "Pause"}
    </button>
  </form>
);

const Workers = ({ workers }: { workers: QueueOverview["workers"] }) => (
  <section aria-label="Workers">
    <h2>Workers</h2>
    <List label="Workers" isStacked labels={["Name", "State"]} numbers={["Sessions"]}>
      {workers.map(({ name, state, slots, sessions }) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          <td data-label="State">{state.replace("_", " ")}</td>
          <td class="number" data-label="Sessions">
            {sessions} of {slots}
          </td>
        </tr>
      ))}
    </List>
  </section>
);

const Pauses = ({ pauses, now }: { pauses: QueueOverview["pauses"]; now: number }) =>
  pauses.length === 0 ? null : (
    <div class="notice" role="status">
      {pauses.map(({ kind, subject, name, reason, pausedBy, pausedAt }) => (
        <p key={`${kind} ${subject}`}>
          The {kind} {name} was paused <When at={pausedAt} now={now} /> by {pausedBy}
          {reason && `: ${reason}`}
        </p>
      ))}
    </div>
  );

type FailuresProps = { base: string; failures: FailureGroup[]; now: number };

const Failures = ({ base, failures, now }: FailuresProps) => (
  <section aria-label="Failures">
    <h2>Failures of the last 7 days</h2>
    {failures.length === 0 ? (
      <p class="muted">Nothing failed that was not retried.</p>
    ) : (
      <List label="Failures" isStacked labels={["Cause", "Organizations", "Newest"]} numbers={["Failed", "Actions"]}>
        {failures.map(({ id, kind, cause, code, failed, organizations, newestAt }) => (
          <tr key={id}>
            <th scope="row">
              {kind === "run" ? "Run" : "Notification"}: {cause.replaceAll("_", " ")}
              {code && <span class="aside block">{code}</span>}
            </th>
            <td data-label="Organizations">{organizations.join(", ")}</td>
            <td data-label="Newest">
              <When at={newestAt} now={now} />
            </td>
            <td class="number" data-label="Failed">
              {failed}
            </td>
            <td class="number">
              <form class="inline" method="post" action={`${base}/settings/queue/failures/${id}/retry`}>
                <button
                  type="submit"
                  aria-label={`Retry ${count(failed, kind === "run" ? "run" : "notification")}: ${cause}`}
                >
                  Retry
                </button>
              </form>
            </td>
          </tr>
        ))}
      </List>
    )}
  </section>
);
