import type { FrictionPoint } from "../../friction/schema.ts";
import { count } from "../../grading/text.ts";
import { humanize } from "../../reports/labels.ts";
import type { Report } from "../../reports/schema.ts";
import type { Site } from "../site.ts";
import { EvidenceLinks, Fold } from "./figures.tsx";
import { ExternalLink, foreignText } from "./layout.tsx";

type ListProps = {
  report: Report;
  labels: Map<string, string>;
  session: string | null;
  hasHistory: boolean;
  site: Site;
};

/**
 * Friction points with their evidence. `labels`: labels such as F1, by ID. `session`: URL of the session page; null if the events cannot be read.
 * `hasHistory`: whether friction points link to their history.
 */
export function FrictionList({ report, labels, session, hasHistory, site }: ListProps) {
  const { frictionPoints } = report;
  return (
    <Fold id="friction" title="All friction" count={frictionPoints.length}>
      {frictionPoints.length === 0 && <p class="muted">No friction found.</p>}
      <ol class="frictions">
        {frictionPoints.map((friction) => (
          <Friction
            key={friction.id}
            friction={friction}
            label={labels.get(friction.id) ?? ""}
            session={session}
            history={hasHistory ? `${site.base}/friction/${friction.fingerprint}?promptId=${report.prompt.id}` : null}
          />
        ))}
      </ol>
    </Fold>
  );
}

function stateText({ state, seenIn: { runs, of } }: FrictionPoint): string {
  if (state !== "new") return `${state}, in ${runs} of ${count(of, "report")}`;
  return of === 1 ? "first report" : "new in this report";
}

type FrictionProps = { friction: FrictionPoint; label: string; session: string | null; history: string | null };

function Friction({ friction, label, session, history }: FrictionProps) {
  const { severity, category, phase, title, description, quote, url, onPath, events } = friction;
  const { lostSeconds, lostUsd, lostPoints, dismissed } = friction;
  return (
    <li id={label} class={`severity-${severity}`}>
      <h3>
        <a class="name" href={`#${label}`}>
          {label}
        </a>{" "}
        {title}
      </h3>
      <p class="meta">
        <span class="pill">{severity}</span>
        <span>{humanize(category)}</span>
        <span>{phase}</span>
        {!onPath && <span>elsewhere in the docs</span>}
        {dismissed && <span title={dismissed.reason}>not a problem</span>}
        {history === null ? <span>{stateText(friction)}</span> : <a href={history}>{stateText(friction)}</a>}
        {lostPoints ? <span>{lostPoints} points lost</span> : null}
        {lostSeconds !== null && lostSeconds >= 0.1 && <span>{lostSeconds} s lost</span>}
        {lostUsd !== null && lostUsd > 0 && <span>${lostUsd.toFixed(2)} lost</span>}
      </p>
      <p>{description}</p>
      {quote && <blockquote {...foreignText}>{quote}</blockquote>}
      <p class="meta">
        {url && <ExternalLink url={url} />}
        <EvidenceLinks events={events} session={session} />
      </p>
    </li>
  );
}
