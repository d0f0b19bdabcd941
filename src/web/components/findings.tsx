import type { FrictionPoint } from "../../friction/schema.ts";
import { plain } from "../../reports/labels.ts";
import type { Report } from "../../reports/schema.ts";
import type { Site } from "../site.ts";
import { Proof } from "./figures.tsx";
import { Outside } from "./layout.tsx";

type Names = Map<string, string>;

type AdviceProps = { report: Report; names: Names; path: string; mayAct: boolean };

const fixStatusLabels: Record<NonNullable<Report["recommendations"][number]["done"]>["status"], string> = {
  running: "Verifying fix…",
  verified: "Verified",
  did_not_help: "Didn’t help",
  undecided: "Inconclusive",
  reopened: "Regressed",
};

/** Recommended fixes, best first, with the friction they fix and their verification. `path`: URL of the report, for the forms. */
export function Advice({ report, names, path, mayAct }: AdviceProps) {
  const { recommendations, frictionPoints } = report;
  const prints = new Map(frictionPoints.map(({ id, fingerprint }) => [id, fingerprint]));
  if (recommendations.length === 0) return null;
  return (
    <section>
      <h2 id="advice">Recommended fixes</h2>
      <ol class="advice">
        {recommendations.map(({ id, title, action, url, frictionIds, expectedGain, done }) => (
          <li key={id}>
            <h3>
              {title}
              {expectedGain !== null && expectedGain > 0 && <span class="gain">+{expectedGain} points</span>}
            </h3>
            <p>{action}</p>
            <p class="meta">
              Fixes{" "}
              {frictionIds.map((frictionId) => (
                <a key={frictionId} class="name" href={`#${names.get(frictionId)}`}>
                  {names.get(frictionId)}
                </a>
              ))}
              {url && <Outside url={url} />}
            </p>
            {done && (
              <p class={`done done-${done.status}`}>
                <span class="pill">{fixStatusLabels[done.status]}</span> {done.reason}. Marked done by {done.doneBy}
              </p>
            )}
            {mayAct && done?.status !== "running" && (
              <form method="post" action={`${path}/done/${prints.get(frictionIds[0] ?? "")}`}>
                <button type="submit" aria-label={`Mark as done: ${title}`}>
                  Mark as done
                </button>
              </form>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}

type ListProps = { report: Report; names: Names; session: string | null; isOwn: boolean; site: Site };

/** Friction points with their evidence. `session`: URL of the session page; null if the events cannot be read. `isOwn`: link to their history. */
export function FrictionList({ report, names, session, isOwn, site }: ListProps) {
  const { frictionPoints } = report;
  return (
    <section>
      <h2 id="friction">
        Friction points <small>{frictionPoints.length}</small>
      </h2>
      {frictionPoints.length === 0 && <p class="muted">No friction found.</p>}
      <ol class="frictions">
        {frictionPoints.map((friction) => (
          <Friction
            key={friction.id}
            friction={friction}
            name={names.get(friction.id) ?? ""}
            session={session}
            history={isOwn ? `${site.base}/friction/${friction.fingerprint}?promptId=${report.prompt.id}` : null}
          />
        ))}
      </ol>
    </section>
  );
}

const stateText = ({ state, seenIn: { runs, of } }: FrictionPoint) =>
  state === "new" ? (of === 1 ? "first report" : "new in this report") : `${state}, in ${runs} of ${of} reports`;

type FrictionProps = { friction: FrictionPoint; name: string; session: string | null; history: string | null };

function Friction({ friction, name, session, history }: FrictionProps) {
  const { severity, category, phase, title, description, quote, url, onPath, events } = friction;
  const { lostSeconds, lostUsd, lostPoints } = friction;
  return (
    <li id={name} class={`severity-${severity}`}>
      <h3>
        <a class="name" href={`#${name}`}>
          {name}
        </a>{" "}
        {title}
      </h3>
      <p class="meta">
        <span class="pill">{severity}</span>
        <span>{plain(category)}</span>
        <span>{phase}</span>
        {!onPath && <span>elsewhere in the docs</span>}
        {history === null ? <span>{stateText(friction)}</span> : <a href={history}>{stateText(friction)}</a>}
        {lostPoints ? <span>{lostPoints} points lost</span> : null}
        {lostSeconds !== null && <span>{lostSeconds} s lost</span>}
        {lostUsd !== null && lostUsd > 0 && <span>${lostUsd.toFixed(2)} lost</span>}
      </p>
      <p>{description}</p>
      {quote && <blockquote>{quote}</blockquote>}
      <p class="meta">
        {url && <Outside url={url} />}
        <Proof events={events} session={session} />
      </p>
    </li>
  );
}
