import { threshold } from "../../stats/power.ts";
import { maxChangeOf } from "./charts.tsx";

/** A change in points with its interval. `label`: what changed. `isTotal`: whether it is the change over all prompts. */
export type ForestRow = { label: string; delta: number; low: number | null; high: number | null; isTotal: boolean };

/** Labels are above the intervals, so that the plot can be read on a narrow screen. */
const [rowHeight, labelHeight, chartWidth] = [42, 16, 420];

/**
 * Changes of scores with their 95% intervals. Each change has its own line, and all have the same scale. Put a table with the same data next to the
 * plot.
 */
export function ForestPlot({ rows, title }: { rows: ForestRow[]; title: string }) {
  const maxPoints = maxChangeOf(rows.flatMap(({ delta, low, high }) => [delta, low ?? delta, high ?? delta]));
  const x = (points: number) => chartWidth / 2 + (points / maxPoints) * (chartWidth / 2 - 12);
  const bottom = rows.length * rowHeight + 4;
  return (
    <svg class="forest" viewBox={`0 0 ${chartWidth} ${bottom + 20}`} role="img">
      <title>{title}</title>
      <rect class="band" x={x(-threshold)} width={x(threshold) - x(-threshold)} y="0" height={bottom} />
      <path class="axis" d={`M${x(0)} 0V${bottom}M${x(-maxPoints)} ${bottom}H${x(maxPoints)}`} />
      {rows.map(({ label, delta, low, high, isTotal }, i) => {
        const top = i * rowHeight;
        const y = top + labelHeight + 12;
        return (
          <g key={`${i} ${label}`} class={isTotal ? "total" : undefined}>
            <text x="0" y={top + labelHeight - 4}>
              {label.length > 60 ? `${label.slice(0, 59)}…` : label}
            </text>
            {low !== null && high !== null && (
              <path
                class="range"
                d={`M${x(low)} ${y - 5}V${y + 5}M${x(low)} ${y}H${x(high)}M${x(high)} ${y - 5}V${y + 5}`}
              />
            )}
            {isTotal ? (
              <path class="mark" d={`M${x(delta)} ${y - 6}l6 6l-6 6l-6 -6Z`} />
            ) : (
              <circle class="mark" cx={x(delta)} cy={y} r="4" />
            )}
          </g>
        );
      })}
      <text class="start" x={x(-maxPoints)} y={bottom + 15}>{`−${maxPoints}`}</text>
      <text class="middle" x={x(0)} y={bottom + 15}>
        0
      </text>
      <text class="end" x={x(maxPoints)} y={bottom + 15}>{`+${maxPoints}`}</text>
    </svg>
  );
}
