import { type Owner, ownerLabels, ownersOf } from "../../reports/owners.ts";
import type { Report } from "../../reports/schema.ts";

const width = 1000;

const labelOf = (owner: Owner) => (owner.kind === "fix" ? `Fix ${owner.priority}` : ownerLabels[owner.kind]);
/** Fixes alternate in color, so that neighbors differ. */
const classOf = (owner: Owner) =>
  `owner-${owner.kind.replace("_", "-")}${owner.kind === "fix" && owner.priority % 2 === 0 ? " even" : ""}`;

/** All 100 points as one bar: the score, and the owners of lost points. */
export function ScoreBar({ report }: { report: Report }) {
  const owners = ownersOf(report);
  if (owners.length === 0) return null;
  const starts = owners.map((_, i) => owners.slice(0, i).reduce((sum, { points }) => sum + points, 0));
  return (
    <figure class="score-bar">
      <svg viewBox={`0 0 ${width} 20`} preserveAspectRatio="none" aria-hidden="true">
        {owners.map((owner, i) => (
          <rect
            key={labelOf(owner)}
            class={classOf(owner)}
            x={(starts[i] ?? 0) * 10}
            width={Math.max(3, owner.points * 10 - (i < owners.length - 1 ? 2 : 0))}
            height="20"
          >
            <title>{`${labelOf(owner)}: ${owner.points} points`}</title>
          </rect>
        ))}
      </svg>
      <figcaption>
        <ul aria-label="Points by owner">
          {owners.map((owner) => (
            <li key={labelOf(owner)} class={classOf(owner)} data-owner={owner.kind} data-points={owner.points}>
              <i class="key" />
              {owner.kind === "fix" ? <a href={`#fix-${owner.priority}`}>{labelOf(owner)}</a> : labelOf(owner)}{" "}
              <strong>
                {owner.kind === "score" ? "" : "+"}
                {owner.points}
              </strong>
            </li>
          ))}
        </ul>
      </figcaption>
    </figure>
  );
}
