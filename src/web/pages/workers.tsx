import { count } from "../../grading/text.ts";
import type { Worker } from "../../workers/schema.ts";
import { List } from "../components/figures.tsx";
import { useTime } from "../components/when.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { SettingsFrame } from "./settings.tsx";

export type WorkersPartProps = {
  site: Site;
  workers: Worker[];
  /** false if agents run on the server itself. */
  usesWorkers: boolean;
  mayChange: boolean;
  now: number;
};

type Props = WorkersPartProps & { viewer: Viewer; successMessage?: string; errorMessage?: string };

/** The machines that run agents. It updates live. */
export function WorkersPage({ workers, usesWorkers, mayChange, now, ...frame }: Props) {
  const { site, viewer } = frame;
  const live = usesWorkers
    ? { "hx-sse:connect": `${site.base}/settings/workers/live?org=${viewer.org}`, "hx-swap": "innerMorph" }
    : {};
  return (
    <SettingsFrame {...frame} path="/settings/workers">
      <div {...live}>
        <WorkersPart {...{ site, workers, usesWorkers, mayChange, now }} />
      </div>
      {usesWorkers && !mayChange && <p class="muted">Only owners can drain and remove workers.</p>}
    </SettingsFrame>
  );
}

/** The part of the page that updates live. */
export function WorkersPart({ site, workers, usesWorkers, mayChange, now }: WorkersPartProps) {
  if (!usesWorkers) return <NoRedis base={site.base} />;
  if (workers.length === 0) return <NoWorkers site={site} />;
  return (
    <List
      label="Workers"
      isStacked
      labels={["Name", "State", "Version", "Agents", "Labels"]}
      numbers={["Sessions", "Last seen", ...(mayChange ? ["Actions"] : [])]}
    >
      {workers.map((worker) => (
        <WorkerRow key={worker.id} {...{ base: site.base, worker, mayChange, now }} />
      ))}
    </List>
  );
}

type RowProps = { base: string; worker: Worker; mayChange: boolean; now: number };

function WorkerRow({ base, worker, mayChange, now }: RowProps) {
  const { id, name, state, problem, version, slots, runIds, labels, agents, lastSeenAt } = worker;
  const toTime = useTime();
  return (
    <tr id={`worker-${id}`}>
      <th scope="row">
        {name}
        <span class="aside block" title={id}>
          ID {id.slice(0, 8)}
        </span>
      </th>
      <td data-label="State">
        <State state={state} />
        {state === "not_ready" && <span class="aside block">{problem}</span>}
      </td>
      <td data-label="Version">{version}</td>
      <td data-label="Agents">{agents.map((agent) => agent.id).join(", ")}</td>
      <td data-label="Labels">{labels.length === 0 ? <span class="muted">None</span> : labels.join(", ")}</td>
      <td class="number" data-label="Sessions">
        {runIds.length} of {slots}
      </td>
      <td class="number" data-label="Last seen">
        <time dateTime={lastSeenAt} title={toTime(lastSeenAt)}>
          {secondsAgo(lastSeenAt, now)}
        </time>
      </td>
      {mayChange && (
        <td class="number">
          <form class="inline" method="post" action={`${base}/settings/workers/${id}`}>
            {(state === "ready" || state === "not_ready") && (
              <button type="submit" name="do" value="drain" aria-label={`Drain ${name}`}>
                Drain
              </button>
            )}
            <button type="submit" class="bad" name="do" value="remove" aria-label={`Remove ${name}`}>
              Remove
            </button>
          </form>
        </td>
      )}
    </tr>
  );
}

/** Always in seconds, because a worker leaves the list after half a minute of silence. */
const secondsAgo = (at: string, now: number): string =>
  `${Math.max(0, Math.round((now - Date.parse(at)) / 1000))} s ago`;

const stateLabels: Record<Worker["state"], string> = {
  ready: "Ready",
  not_ready: "Not ready",
  draining: "Draining",
  refused: "Refused: wrong version",
};

/** The state of a worker: a dot and a label, in the colors of the run status. */
const State = ({ state }: { state: Worker["state"] }) => {
  const tone = { ready: "completed", not_ready: "failed", draining: "running", refused: "failed" }[state];
  return (
    <span class={`status-mark run-${tone}`} data-state={state}>
      {stateLabels[state]}
    </span>
  );
};

const NoWorkers = ({ site: { base, baseUrl } }: { site: Site }) => (
  <div class="empty">
    <h2>No workers connected</h2>
    <p>
      Agents run only on workers, so runs wait for one. For each machine that should run agents, create a credential on
      the server of this service:
    </p>
    <pre class="wrapped">
      <code>evald workers add worker-1</code>
    </pre>
    <p>
      It prints the worker's <code>EVALD_REDIS_URL</code>. Set it on that machine, and start the worker:
    </p>
    <pre class="wrapped">
      <code>{`evald worker --gateway ${baseUrl}/gateway`}</code>
    </pre>
    <p>
      <a href={`${base}/docs/workers`}>Set up workers</a>
    </p>
  </div>
);

const NoRedis = ({ base }: { base: string }) => (
  <div class="empty">
    <h2>Agents run on this server</h2>
    <p>
      To run them on other machines, connect the service to Redis with <code>EVALD_REDIS_URL</code>, and start workers.{" "}
      <a href={`${base}/docs/workers`}>Set up workers</a>
    </p>
  </div>
);

/** The effects of draining or removing a worker. */
export function effectsOf({ runIds }: Worker, action: "drain" | "remove"): string[] {
  const sessions = count(runIds.length, "session");
  const restart = "To use the machine again, start the worker there.";
  if (runIds.length === 0) return ["It has no sessions, so its process ends now.", restart];
  if (action === "drain")
    return ["It takes no new sessions.", `It finishes ${sessions}, and then its process ends.`, restart];
  return [
    `${sessions} ${runIds.length === 1 ? "starts" : "start"} again on another worker. Model costs so far are not refunded.`,
    "Its process ends now.",
    restart,
  ];
}
