/** The scale of scores covers at least this many points, so that a small change doesn't look large. */
export const minScoreSpan = 20;

/** The end of a scale for changes in points. It is a multiple of 5, at least 10, and large enough for all values. */
export const maxChangeOf = (values: number[]): number =>
  Math.max(10, Math.ceil(Math.max(0, ...values.map(Math.abs)) / 5) * 5);

/**
 * Scores from 0 to 100 as a line without axes, oldest first. Fewer than two scores show nothing. `subject`: the subject of the scores, for screen
 * readers.
 */
export function Sparkline({ scores, subject }: { scores: number[]; subject: string }) {
  if (scores.length < 2) return null;
  const label = `Scores of ${subject}, oldest first: ${scores.map((score) => score.toFixed(0)).join(", ")}`;
  const [width, height, edge] = [96, 24, 3];
  const lowest = Math.min(...scores);
  const span = Math.max(...scores) - lowest;
  // The scores are centered on the scale.
  const range = Math.max(span, minScoreSpan);
  const from = lowest - (range - span) / 2;
  const x = (i: number) => edge + (i * (width - 2 * edge)) / (scores.length - 1);
  const y = (score: number) => height - edge - ((score - from) / range) * (height - 2 * edge);
  const points = scores.map((score, i) => `${x(i).toFixed(1)},${y(score).toFixed(1)}`);
  const [cx, cy] = points.at(-1)?.split(",") ?? [];
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={label}>
      <polyline points={points.join(" ")} />
      <circle cx={cx} cy={cy} r="2.5" />
    </svg>
  );
}

type Point = { score: number; name: string; day: string };

/**
 * Scores over time, oldest first, on a scale from 0 to 100. `name`: the hover text of a point. `day`: the date of a point, for the axis. Put a table
 * with the same data next to the chart.
 */
export function ScoreChart({ points, label }: { points: Point[]; label: string }) {
  const [width, height, left, right, top, bottom] = [640, 184, 40, 8, 10, 34];
  const x = (i: number) =>
    points.length === 1 ? (left + width - right) / 2 : left + (i * (width - left - right)) / (points.length - 1);
  const y = (score: number) => top + (1 - score / 100) * (height - top - bottom);
  const last = points.length - 1;
  // Without a class, text ends at its x.
  const anchorOf = (i: number) => {
    if (i === 0) return "start";
    return i === last ? undefined : "middle";
  };
  const pointsWithDay = [...new Set([0, Math.round(last / 2), last])];
  return (
    <svg class="score-chart" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      {[0, 50, 100].map((score) => (
        <g key={score}>
          <line x1={left} x2={width - right} y1={y(score)} y2={y(score)} />
          <text x={left - 6} y={y(score) + 3.5}>
            {score}
          </text>
        </g>
      ))}
      <polyline points={points.map(({ score }, i) => `${x(i).toFixed(1)},${y(score).toFixed(1)}`).join(" ")} />
      {pointsWithDay.map((i) => (
        <text key={i} class={anchorOf(i)} x={x(i)} y={height - 8}>
          {points[i]?.day}
        </text>
      ))}
      {points.map(({ score, name }, i) => (
        <circle key={name} cx={x(i).toFixed(1)} cy={y(score).toFixed(1)} r="3.5">
          <title>{name}</title>
        </circle>
      ))}
    </svg>
  );
}

/** From this share on, a usage bar has the color of a warning. */
const warningShare = 0.8;

/** A usage bar. `share`: 0 to 1. */
export const Meter = ({ share, label }: { share: number; label: string }) => (
  <svg
    class={`track ${share >= warningShare ? "grade-d" : "used"}`}
    viewBox="0 0 100 8"
    preserveAspectRatio="none"
    role="img"
    aria-label={label}
  >
    <rect class="rest" width="100" height="8" />
    <rect class="done" width={(Math.min(1, share) * 100).toFixed(1)} height="8" />
  </svg>
);
