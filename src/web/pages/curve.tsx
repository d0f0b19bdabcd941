import { type Curve, readParts, type StatedPart, scoreOn, valueWorth } from "../../grading/curve.ts";
import { letterOf } from "../../grading/methodology.ts";
import { Bar } from "./figures.tsx";

const [left, right, top, bottom] = [22, 232, 8, 66];
const samples = 24;

/** Each part of a dimension: what was measured, what it is worth, and where that lies on its curve. The text itself where it states no part. */
export function Parts({ desc }: { desc: string }) {
  const parts = readParts(desc);
  const rest = desc.slice(desc.lastIndexOf(" Not measured, ") + 1);
  if (parts.length === 0) return <p class="desc">{desc}</p>;
  return (
    <>
      <ul class="parts">
        {parts.map((part) => (
          <Part key={part.name} part={part} />
        ))}
      </ul>
      {rest.startsWith("Not measured") && <p class="muted">{rest}</p>}
    </>
  );
}

const Part = ({ part }: { part: StatedPart }) => (
  <li>
    <div>
      <h4>
        {part.name} <small>{part.share} of the dimension</small>
      </h4>
      <p class="measure">
        <Bar score={part.score} grade={letterOf(part.score)} />
        <strong>{part.score}</strong>
      </p>
      <p class="desc">{part.measured}</p>
    </div>
    {part.curve && <CurveChart curve={part.curve} score={part.score} name={part.name} />}
  </li>
);

/** What each value is worth, worst at the left, and where the measured one lies. */
function CurveChart({ curve, score, name }: { curve: Curve; score: number; name: string }) {
  const { best, worst, bestWords, worstWords, floor } = curve;
  const x = (value: number) => left + ((value - worst) / (best - worst)) * (right - left);
  const y = (worth: number) => bottom - (worth / 100) * (bottom - top);
  const line = Array.from({ length: samples + 1 }, (_, i) => {
    const value = worst + ((best - worst) * i) / samples;
    return `${x(value).toFixed(1)},${y(scoreOn(curve, value)).toFixed(1)}`;
  });
  const [px, py] = [x(valueWorth(curve, score)).toFixed(1), y(score).toFixed(1)];
  const words = `${name}: ${score} of 100, on a curve from ${floor} at ${worstWords} to 100 at ${bestWords}`;
  return (
    <svg class={`curve grade-${letterOf(score).charAt(0).toLowerCase()}`} viewBox="0 0 240 84" role="img">
      <title>{words}</title>
      <path class="axis" d={`M${left} ${top}V${bottom}H${right}`} />
      <polyline class="line" points={line.join(" ")} />
      <path class="guide" d={`M${left} ${py}H${px}V${bottom}`} />
      <circle class="point" cx={px} cy={py} r="4" />
      <text class="end" x={left - 4} y={top + 4}>
        100
      </text>
      <text class="end" x={left - 4} y={bottom + 3}>
        0
      </text>
      <text x={left} y={bottom + 14}>
        {worstWords}
      </text>
      <text class="end" x={right} y={bottom + 14}>
        {bestWords}
      </text>
    </svg>
  );
}
