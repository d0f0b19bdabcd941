import { scoreOn } from "../../grading/dimensions/curve.ts";
import { describeCurve, describePart, formatAmount } from "../../grading/dimensions/part.ts";
import { gradeLetter } from "../../grading/methodology.ts";
import { lowerFirst, percent } from "../../grading/text.ts";
import type { Report } from "../../reports/schema.ts";
import { Bar } from "./figures.tsx";

type Dimension = Report["dimensions"][number];
type Part = Dimension["parts"][number];

const [left, right, top, bottom] = [22, 232, 8, 66];
const curveSteps = 24;

/** The parts of a dimension. Each shows what was measured, its score, and where the value lies on the curve. */
export const DimensionParts = ({ dimension: { parts, unmeasured } }: { dimension: Dimension }) => (
  <>
    <ul class="parts">
      {parts.map((part) => (
        <PartRow key={part.name} part={part} />
      ))}
    </ul>
    {unmeasured.length > 0 && (
      <p class="muted">
        Not measured: {unmeasured.map((name) => lowerFirst(name)).join(", ")}. The other parts share the weight.
      </p>
    )}
  </>
);

const PartRow = ({ part }: { part: Part }) => (
  <li>
    <div>
      <h4>
        {part.name} <small>{percent(part.weight)} of the dimension</small>
      </h4>
      <p class="measure">
        <Bar score={part.score} grade={gradeLetter(part.score)} />
        <strong>{part.score}</strong>
      </p>
      <p class="desc">{describePart(part)}</p>
    </div>
    <CurveChart part={part} />
  </li>
);

/** The curve of a value: the possible values, with the worst on the left, and the measured value. */
function CurveChart({ part }: { part: Part }) {
  const { name, curve, value, score, unit } = part;
  if (curve === null || curve.best === curve.worst) return null;
  const { best, worst } = curve;
  const toX = (amount: number) => left + ((amount - worst) / (best - worst)) * (right - left);
  const toY = (points: number) => bottom - (points / 100) * (bottom - top);
  const line = Array.from({ length: curveSteps + 1 }, (_, i) => {
    const amount = worst + ((best - worst) * i) / curveSteps;
    return `${toX(amount).toFixed(1)},${toY(scoreOn(curve, amount)).toFixed(1)}`;
  });
  const valueOnCurve = Math.min(Math.max(value, Math.min(best, worst)), Math.max(best, worst));
  const [pointX, pointY] = [toX(valueOnCurve).toFixed(1), toY(score).toFixed(1)];
  return (
    <svg class={`curve grade-${gradeLetter(score).charAt(0).toLowerCase()}`} viewBox="0 0 240 84" role="img">
      <title>{`${name}: ${score} of 100 (${describeCurve(part)})`}</title>
      <path class="axis" d={`M${left} ${top}V${bottom}H${right}`} />
      <polyline class="line" points={line.join(" ")} />
      <path class="guide" d={`M${left} ${pointY}H${pointX}V${bottom}`} />
      <circle class="point" cx={pointX} cy={pointY} r="4" />
      <text class="end" x={left - 4} y={top + 4}>
        100
      </text>
      <text class="end" x={left - 4} y={bottom + 3}>
        0
      </text>
      <text x={left} y={bottom + 14}>
        {formatAmount(worst, unit)}
        {worst > best ? " or more" : ""}
      </text>
      <text class="end" x={right} y={bottom + 14}>
        {formatAmount(best, unit)}
      </text>
    </svg>
  );
}
