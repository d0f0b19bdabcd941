import type { Report } from "../../reports/schema.ts";
import { type ScoreSegment, scoreSegmentsOf, segmentLabels } from "../../reports/score-segments.ts";

const width = 1000;

const labelOf = (segment: ScoreSegment) =>
  segment.kind === "fix" ? `Fix ${segment.priority}` : segmentLabels[segment.kind];
/** The color says only what kind of points it is: all fixes have the same one, with a gap between neighbors. */
const classOf = (segment: ScoreSegment) => `segment-${segment.kind.replace("_", "-")}`;

/** All 100 points as one bar: the score, and what the other points were lost to. */
export function ScoreBar({ report }: { report: Report }) {
  const segments = scoreSegmentsOf(report);
  if (segments.length === 0) return null;
  const starts = segments.map((_, i) => segments.slice(0, i).reduce((sum, { points }) => sum + points, 0));
  return (
    <figure class="score-bar">
      <svg viewBox={`0 0 ${width} 20`} preserveAspectRatio="none" aria-hidden="true">
        {segments.map((segment, i) => (
          <rect
            key={labelOf(segment)}
            class={classOf(segment)}
            x={(starts[i] ?? 0) * 10}
            width={Math.max(3, segment.points * 10 - (i < segments.length - 1 ? 2 : 0))}
            height="20"
          >
            <title>{`${labelOf(segment)}: ${segment.points} points`}</title>
          </rect>
        ))}
      </svg>
      <figcaption>
        <ul aria-label="Points by cause">
          {segments.map((segment) => (
            <li
              key={labelOf(segment)}
              class={classOf(segment)}
              data-segment={segment.kind}
              data-points={segment.points}
            >
              <i class="key" />
              {segment.kind === "fix" ? <a href={`#fix-${segment.priority}`}>{labelOf(segment)}</a> : labelOf(segment)}{" "}
              <strong>
                {segment.kind === "score" ? "" : "+"}
                {segment.points}
              </strong>
            </li>
          ))}
        </ul>
      </figcaption>
    </figure>
  );
}
