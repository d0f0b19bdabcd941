import { duration, percent } from "../../grading/words.ts";
import type { ReportsComparison as Comparison } from "../../reports/sidebyside.ts";
import { metricWords, plain } from "../words.ts";
import { Fact, figureHeads, Heads, Wide } from "./figures.tsx";

/** Points that matter to a person: a change counts from here. */
const threshold = 5;

/** What a comparison came to, and the evidence for it: whoever reads it can check it. */
export function VerdictCard({ verdict, evidence }: Pick<Comparison, "verdict" | "evidence">) {
  const { reason, method, delta, p, smallestP, successP, seed, sides, dimensions, metrics } = evidence;
  const changes = [...dimensions, ...metrics].toSorted((a, b) => a.pHolm - b.pHolm);
  return (
    <section class={`verdict-card verdict-${verdict ?? "none"}`} aria-label="Verdict">
      <p class="word">{verdict === null ? "No verdict" : capital(plain(verdict))}</p>
      <p>{capital(reason)}.</p>
      {delta && <DeltaChart {...delta} />}
      {(method !== null || p !== null) && (
        <dl class="facts">
          {p !== null && (
            <Fact name="p">
              {pWords(p)}
              {smallestP !== null && `; so many runs could show ${pWords(smallestP)}`}
            </Fact>
          )}
          {successP !== null && <Fact name="p, goal reached">{pWords(successP)}, Fisher’s exact test</Fact>}
          {method !== null && (
            <Fact name="Method">
              {method}
              {seed !== null && `, random seed ${seed}`}
            </Fact>
          )}
        </dl>
      )}
      {sides.length === 2 && (
        <Wide label="Both evaluations">
          <table class="list">
            <Heads words={["Evaluation"]} numbers={["Runs", ...figureHeads]} />
            <tbody>
              {sides.map((side, i) => (
                <tr key={side.evalRequestId}>
                  <th scope="row">{i === 0 ? "Before" : "After"}</th>
                  <td class="number">
                    {side.n}
                    {side.smallestChange !== null && <small> can show {side.smallestChange} points</small>}
                    {side.infraFailures > 0 && <small> and {side.infraFailures} that could not be made</small>}
                    {side.unfinished > 0 && <small> and {side.unfinished} to come</small>}
                  </td>
                  <td class="number">{side.score ? meanWords(side.score) : "–"}</td>
                  <td class="number">
                    {side.successRate ? `${percent(side.successRate.value)} of ${side.successRate.of}` : "–"}
                  </td>
                  <td class="number">{side.medianSeconds === null ? "–" : duration(side.medianSeconds)}</td>
                  <td class="number">{side.medianCostUsd === null ? "–" : `$${side.medianCostUsd.toFixed(2)}`}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Wide>
      )}
      {changes.length > 0 && (
        <details>
          <summary>Each dimension and metric, tested</summary>
          <Wide label="Each dimension and metric, tested">
            <table class="list">
              <Heads words={["Name"]} numbers={["Before", "After", "Change, 95 %", "p, corrected"]} />
              <tbody>
                {changes.map(({ name, before, after, delta, pHolm }) => (
                  <tr key={name}>
                    <th scope="row">{metricWords[name] ?? name}</th>
                    <td class="number">{before}</td>
                    <td class="number">{after}</td>
                    <td class="number">
                      {delta.value}
                      {delta.low !== null && ` (${delta.low} to ${delta.high})`}
                    </td>
                    <td class="number">{pWords(pHolm)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Wide>
        </details>
      )}
    </section>
  );
}

const capital = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1);

const pWords = (p: number): string => (p < 0.001 ? "under 0.001" : p.toFixed(3));

/** `72.4 (70.1 to 74.7)` */
const meanWords = ({ mean, low, high }: { mean: number; low: number | null; high: number | null }): string =>
  low === null || high === null ? `${mean}, single run` : `${mean} (${low} to ${high})`;

/** The change of the mean score with its interval, against the band in which a change does not matter. */
function DeltaChart({ value, low, high }: { value: number; low: number | null; high: number | null }) {
  const [from, to] = [low ?? value, high ?? value];
  const most = Math.max(10, Math.ceil(Math.max(Math.abs(from), Math.abs(to)) / 5) * 5);
  const x = (points: number) => 200 + (points / most) * 190;
  const label = `The mean score changed by ${value} points, 95 % interval from ${from} to ${to}; under ${threshold} points a change does not matter`;
  return (
    <svg class="delta" viewBox="0 0 400 52" role="img">
      <title>{label}</title>
      <rect class="band" x={x(-threshold)} width={x(threshold) - x(-threshold)} y="4" height="30" />
      <path class="axis" d="M10 19H390M200 4V34" />
      <path class="range" d={`M${x(from)} 13V25M${x(from)} 19H${x(to)}M${x(to)} 13V25`} />
      <circle cx={x(value)} cy="19" r="4.5" />
      <text x="10" y="48">{`−${most}`}</text>
      <text x="200" y="48" class="middle">
        0
      </text>
      <text x="390" y="48" class="end">{`+${most}`}</text>
    </svg>
  );
}
