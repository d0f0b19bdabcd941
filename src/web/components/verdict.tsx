import type { ComponentChildren } from "preact";
import type { Comparison } from "../../comparisons/compare.ts";
import { capitalize, duration } from "../../grading/text.ts";
import { humanize, metricLabels } from "../../reports/labels.ts";
import { threshold } from "../../stats/power.ts";
import { maxChangeOf } from "./charts.tsx";
import { Fact, goalReachedText, List, summaryColumns } from "./figures.tsx";

type Evidence = Comparison["evidence"];
/** `agent`: shown for each side if the sides may have different agents. `names`: the names of the sides, used in all tables. */
type Props = {
  verdict: Comparison["verdict"];
  evidence: Omit<Evidence, "sides"> & { sides: (Evidence["sides"][number] & { agent?: string | null })[] };
  /** Replaces the sentence about the evidence. */
  reason?: ComponentChildren;
  names?: readonly [string, string];
};

/** The verdict of a comparison with its evidence. */
export function VerdictCard({ verdict, evidence, reason, names = ["Before", "After"] }: Props) {
  const { method, score, delta, p, smallestP, successP, seed, sides, dimensions, metrics } = evidence;
  const isAcrossAgents = sides.length === 2 && sides[0]?.agent !== sides[1]?.agent;
  const changes = [...dimensions, ...metrics];
  const comparedMeans = score === null ? [] : [score.before, score.after];
  return (
    <section class={`verdict-card verdict-${verdict ?? "none"}`} aria-label="Verdict">
      <p class="word">{verdict === null ? "No verdict" : capitalize(humanize(verdict))}</p>
      {reason || <p>{capitalize(withMinus(evidence.reason))}.</p>}
      {delta && <DeltaChart {...delta} />}
      {(method !== null || p !== null) && (
        <dl class="facts">
          {p !== null && (
            <Fact name="p">
              {formatP(p)}
              {smallestP !== null && ` (smallest possible ${formatP(smallestP)})`}
            </Fact>
          )}
          {successP !== null && <Fact name="p (goal reached)">{formatP(successP)}, Fisher’s exact test</Fact>}
          {method !== null && (
            <Fact name="Method">
              {method}
              {seed !== null && `, random seed ${seed}`}
            </Fact>
          )}
        </dl>
      )}
      {sides.length === 2 && (
        <List label="Sides" isStacked labels={["Side"]} numbers={["Runs", ...summaryColumns]}>
          {sides.map((side, i) => (
            <tr key={i === 0 ? "before" : "after"}>
              <th scope="row">
                {names[i]} {isAcrossAgents && <small>{side.agent}</small>}
              </th>
              <td class="number" data-label="Runs">
                {side.n}
                {side.smallestChange !== null && <small> detects {side.smallestChange} points or more</small>}
                {side.infraFailures > 0 && <small> {side.infraFailures} failed</small>}
                {side.unfinished > 0 && <small> {side.unfinished} pending</small>}
              </td>
              <td class="number" data-label={summaryColumns[0]}>
                {scoreText(side, comparedMeans[i] ?? null)}
              </td>
              <td class="number" data-label={summaryColumns[1]}>
                {goalReachedText(side.successRate)}
              </td>
              <td class="number" data-label={summaryColumns[2]}>
                {side.medianSeconds === null ? "–" : duration(side.medianSeconds)}
              </td>
              <td class="number" data-label={summaryColumns[3]}>
                {side.medianCostUsd === null ? "–" : `$${side.medianCostUsd.toFixed(2)}`}
              </td>
            </tr>
          ))}
        </List>
      )}
      {score !== null && score.without.length > 0 && (
        <p class="hint">The scores and their change leave out {score.without.join(", ")}.</p>
      )}
      {changes.length > 0 && (
        <details>
          <summary>Tests by dimension and metric</summary>
          <List
            label="Tests by dimension and metric"
            labels={["Name"]}
            numbers={[...names, "Change (95% CI)", "p (Holm-adjusted)"]}
          >
            {changes.map(({ name, before, after, delta, pHolm }) => (
              <tr key={name}>
                <th scope="row">{metricLabels[name] ?? name}</th>
                <td class="number">{before}</td>
                <td class="number">{after}</td>
                <td class="number">
                  {withMinus(threeDigits(delta.value))}
                  {delta.low !== null &&
                    delta.high !== null &&
                    withMinus(` (${threeDigits(delta.low)} to ${threeDigits(delta.high)})`)}
                </td>
                <td class="number">{formatP(pHolm)}</td>
              </tr>
            ))}
          </List>
        </details>
      )}
    </section>
  );
}

/** Replaces hyphens before numbers with minus signs. */
export const withMinus = (text: string): string => text.replace(/(?<=^|[\s(])-(?=\d)/g, "−");

/** Formats a number with three significant digits, or as a whole number. A metric may be a cost of $0.0012 or a time of 1,800 seconds. */
const threeDigits = (value: number): string =>
  String(Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3)));

const formatP = (p: number): string => (p < 0.001 ? "<0.001" : p.toFixed(3));

/** `72.4 (70.1 to 74.7)`. `comparedMean`: the mean that the change refers to. This mean may leave out dimensions, or weigh prompts equally. */
function scoreText({ score }: Evidence["sides"][number], comparedMean: number | null): string {
  if (score === null) return "–";
  if (comparedMean !== null && comparedMean !== score.mean) return `${comparedMean}`;
  return score.low === null ? `${score.mean}, single run` : `${score.mean} (${score.low} to ${score.high})`;
}

/** The change of the mean score with its confidence interval, drawn over the band of negligible changes. */
function DeltaChart({ value, low, high }: { value: number; low: number | null; high: number | null }) {
  const [from, to] = [low ?? value, high ?? value];
  const maxPoints = maxChangeOf([from, to]);
  const [left, center, right] = [10, 200, 390];
  const x = (points: number) => center + (points / maxPoints) * (right - center);
  const label = `Change in mean score: ${value} points (95% CI ${from} to ${to}). Changes under ${threshold} points are considered negligible.`;
  return (
    <svg class="delta" viewBox="0 0 400 52" role="img">
      <title>{label}</title>
      <rect class="band" x={x(-threshold)} width={x(threshold) - x(-threshold)} y="4" height="30" />
      <path class="axis" d={`M${left} 19H${right}M${center} 4V34`} />
      <path class="range" d={`M${x(from)} 13V25M${x(from)} 19H${x(to)}M${x(to)} 13V25`} />
      <circle cx={x(value)} cy="19" r="4.5" />
      <text x={left} y="48">{`−${maxPoints}`}</text>
      <text x={center} y="48" class="middle">
        0
      </text>
      <text x={right} y="48" class="end">{`+${maxPoints}`}</text>
    </svg>
  );
}
