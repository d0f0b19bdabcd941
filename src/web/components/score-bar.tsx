import type { Report } from "../../reports/schema.ts";
import { type ScoreSegment, scoreSegmentsOf, segmentLabels } from "../../reports/score-segments.ts";

/** In SVG units. Even the smallest segment stays visible. A gap separates segments, which may have the same color. */
const [barWidth, barHeight, minWidth, gap] = [1000, 20, 3, 2];

/** A segment of a bar. `share`: its share of the whole bar, 0 to 1. `look`: its CSS class. `hint`: shown on hover. */
type Segment = { name: string; share: number; look: string; hint?: string };

/** Segments side by side. They are hidden from screen readers, so put a list with the same data next to the bar. */
export function SegmentBar({ segments }: { segments: Segment[] }) {
  let x = 0;
  return (
    <svg viewBox={`0 0 ${barWidth} ${barHeight}`} preserveAspectRatio="none" aria-hidden="true">
      {segments.map(({ name, share, look, hint }, i) => {
        const start = x;
        x += share * barWidth;
        const width = share * barWidth - (i < segments.length - 1 ? gap : 0);
        return (
          <rect key={name} class={look} x={start} width={Math.max(minWidth, width)} height={barHeight}>
            {hint !== undefined && <title>{hint}</title>}
          </rect>
        );
      })}
    </svg>
  );
}

const labelOf = (segment: ScoreSegment) =>
  segment.kind === "fix" ? `Fix ${segment.priority}` : segmentLabels[segment.kind];
/** The color shows only the kind of the points, so all fixes have the same color. */
const classOf = (segment: ScoreSegment) => `segment-${segment.kind.replace("_", "-")}`;

/** All 100 points as one bar: the score, and the causes of the lost points. */
export function ScoreBar({ report }: { report: Report }) {
  const segments = scoreSegmentsOf(report);
  if (segments.length === 0) return null;
  return (
    <figure class="score-bar">
      <SegmentBar
        segments={segments.map((segment) => ({
          name: labelOf(segment),
          share: segment.points / 100,
          look: classOf(segment),
          hint: `${labelOf(segment)}: ${segment.points} points`,
        }))}
      />
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
