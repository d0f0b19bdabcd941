import type { FrictionPoint, Report } from "../../reports/schema.ts";
import { Outside } from "../layout.tsx";
import type { Site } from "../site.ts";
import { plain } from "../words.ts";
import { Proof } from "./figures.tsx";

type Names = Map<string, string>;

type AdviceProps = { report: Report; names: Names; path: string; mayAct: boolean };

const doneWords: Record<NonNullable<Report["recommendations"][number]["done"]>["status"], string> = {
  running: "Marked done: it is being looked at again",
  verified: "Verified",
  did_not_help: "Did not help",
  undecided: "Not decided",
  reopened: "Verified once, and back",
};

/** What to change, best first, which friction it removes, and whether doing so helped. `path`: where forms go to. */
export function Advice({ report, names, path, mayAct }: AdviceProps) {
  const { recommendations, frictionPoints } = report;
  const prints = new Map(frictionPoints.map(({ id, fingerprint }) => [id, fingerprint]));
  if (recommendations.length === 0) return null;
  return (
    <section>
      <h2 id="advice">What to change, in this order</h2>
      <ol class="advice">
        {recommendations.map(({ id, title, action, url, frictionIds, expectedGain, done }) => (
          <li key={id}>
            <h3>
              {title}
              {expectedGain !== null && expectedGain > 0 && <span class="gain">+{expectedGain} points</span>}
            </h3>
            <p>{action}</p>
            <p class="meta">
              Removes{" "}
              {frictionIds.map((frictionId) => (
                <a key={frictionId} class="name" href={`#${names.get(frictionId)}`}>
                  {names.get(frictionId)}
                </a>
              ))}
              {url && <Outside url={url} />}
            </p>
            {done && (
              <p class={`done done-${done.status}`}>
                <span class="pill">{doneWords[done.status]}</span> {done.reason}; marked by {done.doneBy}
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

/** Every friction point with its proof. `session`: the address of the page with its events; null if they cannot be read. `isOwn`: its history too. */
export function FrictionList({ report, names, session, isOwn, site }: ListProps) {
  const { frictionPoints } = report;
  return (
    <section>
      <h2 id="friction">
        What stood in the way <small>{frictionPoints.length}</small>
      </h2>
      {frictionPoints.length === 0 && <p class="muted">Nothing that was looked at stood in the way.</p>}
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

const stateWords = ({ state, seenIn: { runs, of } }: FrictionPoint) =>
  state === "new" ? (of === 1 ? "first report" : "new in this report") : `${state}, in ${runs} of ${of} reports`;

type FrictionProps = { friction: FrictionPoint; name: string; session: string | null; history: string | null };

function Friction({ friction, name, session, history }: FrictionProps) {
  const { severity, category, phase, title, description, quote, url, events, lostSeconds, lostUsd, lostPoints } =
    friction;
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
        {history === null ? <span>{stateWords(friction)}</span> : <a href={history}>{stateWords(friction)}</a>}
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
