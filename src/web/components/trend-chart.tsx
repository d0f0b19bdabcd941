import { describeMethodology } from "../../reports/differences.ts";
import type { Trends } from "../../trends/trends.ts";
import { minScoreSpan } from "./charts.tsx";
import { useDay } from "./when.tsx";

const [width, height, left, right, top, bottom] = [960, 280, 56, 14, 32, 36];
const maxLabels = 8;

type ScoredPoint = Trends["points"][number] & { score: NonNullable<Trends["points"][number]["score"]> };

/** The label that distinguishes a series from other series of the same agent and model. */
export const seriesLabel = ({ agentVersion, contextDigest, methodology }: Trends["others"][number]): string =>
  [
    ...(agentVersion ? [`version ${agentVersion}`] : []),
    ...(contextDigest ? [`context ${contextDigest}`] : []),
    `methodology ${describeMethodology(methodology)}`,
  ].join(", ");

const scoredPointsOf = (points: Trends["points"]) =>
  points.filter((point): point is ScoredPoint => point.score !== null);

/**
 * Mean scores over time with their 95 % bands. Other versions, contexts and methodologies are separate lines. Where one of these or the level
 * changes, there is a numbered line. The table below the chart contains the same data.
 */
export function TrendChart({ trends: { points, others, changes }, label }: { trends: Trends; label: string }) {
  const dayOf = useDay();
  const scoredPoints = scoredPointsOf(points);
  const otherLines = others
    .map((each) => ({ name: seriesLabel(each), series: scoredPointsOf(each.points) }))
    .filter(({ series }) => series.length > 0);
  const allPoints = [scoredPoints, ...otherLines.map(({ series }) => series)].flat();
  const times = allPoints.map(({ from }) => Date.parse(from));
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const [lowest, highest] = scaleOf(allPoints);
  const x = (iso: string) => {
    // Changes before the first point or after the last one are shown at the edge of the chart.
    const share = first === last ? 0.5 : Math.min(1, Math.max(0, (Date.parse(iso) - first) / (last - first)));
    return left + share * (width - left - right);
  };
  const y = (score: number) => top + (1 - (score - lowest) / (highest - lowest)) * (height - top - bottom);
  const point = (from: string, score: number) => `${x(from).toFixed(1)},${y(score).toFixed(1)}`;
  const line = (scores: ScoredPoint[]) => scores.map(({ from, score }) => point(from, score.mean)).join(" ");
  const band = (scores: ScoredPoint[]) => {
    const lower = scores.map(({ from, score }) => point(from, score.low ?? score.mean)).reverse();
    return [...scores.map(({ from, score }) => point(from, score.high ?? score.mean)), ...lower].join(" ");
  };
  const step = Math.ceil(scoredPoints.length / maxLabels);
  return (
    <svg class="trend" viewBox={`0 0 ${width} ${height}`} role="img">
      <title>{label}</title>
      {[lowest, (lowest + highest) / 2, highest].map((score) => (
        <g key={score}>
          <path class="axis" d={`M${left} ${y(score)}H${width - right}`} />
          <text class="end" x={left - 6} y={y(score) + 3.5}>
            {score}
          </text>
        </g>
      ))}
      {otherLines.map(({ name, series }) => (
        <g key={name} class="other">
          <polygon class="band" points={band(series)} />
          <polyline class="line" points={line(series)} />
          {series.map(({ from, n, score }) => (
            <circle key={from} cx={x(from)} cy={y(score.mean)} r="3">
              <title>{`${dayOf(from)}: ${score.mean}, ${n} runs (${name})`}</title>
            </circle>
          ))}
        </g>
      ))}
      <polygon class="band" points={band(scoredPoints)} />
      {changes.map(({ at: moment, what, from, to }, i) => (
        <g key={`${moment} ${what} ${i}`} class="mark" data-what={what}>
          <title>{`${dayOf(moment)}: ${what}, ${from} → ${to}`}</title>
          <path d={`M${x(moment)} ${top}V${height - bottom}`} />
          <text class="middle" x={x(moment)} y={top - 8}>
            {i + 1}
          </text>
        </g>
      ))}
      <polyline class="line" points={line(scoredPoints)} />
      {scoredPoints.map(({ from, n, score }, i) => (
        <g key={from}>
          {score.low !== null && score.high !== null && (
            <path class="range" d={`M${x(from)} ${y(score.low)}V${y(score.high)}`} />
          )}
          <circle cx={x(from)} cy={y(score.mean)} r={n === 1 ? 3 : 4}>
            <title>{`${dayOf(from)}: ${score.mean}, ${n} runs`}</title>
          </circle>
          {i % step === 0 && (
            <text class={dayClass(i, scoredPoints.length - 1, step)} x={x(from)} y={height - 8}>
              {dayOf(from)}
            </text>
          )}
        </g>
      ))}
    </svg>
  );
}

/** Keeps the labels of the first and last day within the chart. On narrow screens, every second label is hidden. */
function dayClass(index: number, last: number, step: number): string {
  const anchor = index === last ? "end" : "middle";
  const isSpare = (index / step) % 2 === 1;
  return `${index === 0 ? "" : anchor}${isSpare ? " spare" : ""}`;
}

/** Rounded limits between 0 and 100 that contain every band. */
function scaleOf(points: ScoredPoint[]): [number, number] {
  const lowest = Math.max(0, Math.min(...points.map(({ score }) => score.low ?? score.mean)));
  const highest = Math.min(100, Math.max(...points.map(({ score }) => score.high ?? score.mean)));
  const slack = Math.max(0, minScoreSpan - (highest - lowest)) / 2;
  const from = Math.max(0, Math.floor((lowest - slack) / 10) * 10);
  return [from, Math.max(from + minScoreSpan, Math.min(100, Math.ceil((highest + slack) / 10) * 10))];
}
