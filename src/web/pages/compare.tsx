import { line } from "../../grading/words.ts";
import type { ReportsComparison as Comparison } from "../../reports/sidebyside.ts";
import { Layout } from "../layout.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";
import { metricWords, outcomeWords, plain, timeWords } from "../words.ts";
import { GradeMark, Wide } from "./figures.tsx";
import { signed } from "./standing.tsx";
import { VerdictCard } from "./verdict.tsx";

type Column = { slug: string; title: string };
type Props = { site: Site; viewer: Viewer; compared: Comparison; titles: string[] };

/** A number of every report: worse is lower, or with `isCost` higher. */
type Row = { name: string; values: (number | null)[]; isCost: boolean; words: (value: number) => string };

const points = (value: number) => value.toFixed(1);

const valueWords: Record<string, (value: number) => string> = {
  timeSeconds: (value) => `${value} s`,
  costUsd: (value) => `$${value.toFixed(2)}`,
};

/** How much the last report is worse than the first, as a share of the larger number; null where one has none. */
function lossOf({ values, isCost }: Row): number | null {
  const [first, last] = [values[0] ?? null, values.at(-1) ?? null];
  if (first === null || last === null) return null;
  return (isCost ? last - first : first - last) / Math.max(1, Math.abs(first), Math.abs(last));
}

const worstFirst = (rows: Row[]) => rows.toSorted((a, b) => (lossOf(b) ?? -1) - (lossOf(a) ?? -1));

/** 2 to 10 reports side by side, what got worse at the top. */
export function ComparePage({ site, viewer, compared, titles }: Props) {
  const { reports, dimensions, metrics, friction, comparability } = compared;
  const columns = reports.map(({ slug }, i) => ({ slug, title: titles[i] ?? slug }));
  const scores: Row = { name: "Score", values: reports.map(({ score }) => score), isCost: false, words: points };
  const dimensionRows = dimensions.map(
    ({ name, scores }): Row => ({ name, values: scores, isCost: false, words: points }),
  );
  const metricTable = metrics
    .filter(({ values }) => values.some((value) => value !== null))
    .map(({ name, values }): Row => {
      const words = valueWords[name] ?? String;
      return { name: metricWords[name] ?? name, values, isCost: true, words };
    });
  return (
    <Layout
      site={site}
      viewer={viewer}
      path="/compare"
      title="Compare reports"
      crumbs={[{ name: "Reports", path: "/reports" }, { name: "Compare" }]}
    >
      <h1>Compare {reports.length} reports</h1>
      <VerdictCard verdict={compared.verdict} evidence={compared.evidence} />
      {!comparability.same && (
        <div class="notice">
          <p>These reports differ in more than the docs, so that their numbers do not mean the same:</p>
          <ul>
            {comparability.differences.map((each) => (
              <li key={each}>
                {each.startsWith("prompt: ") ? `prompt: ${[...new Set(titles)].join(" against ")}` : each}
              </li>
            ))}
          </ul>
        </div>
      )}
      <Wide label="Numbers side by side">
        <table class="list compared">
          <thead>
            <tr>
              <th scope="col">Oldest to newest</th>
              {reports.map(({ slug, grade, outcome, createdAt }, i) => (
                <th scope="col" key={slug}>
                  <GradeMark grade={grade} />
                  <a href={`${site.base}/reports/${slug}`}>{columns[i]?.title}</a>
                  <small>{timeWords(createdAt).slice(0, 16)}</small>
                  <small>{outcomeWords[outcome]}</small>
                </th>
              ))}
              <th scope="col" class="number">
                Change
              </th>
            </tr>
          </thead>
          <tbody>
            <NumberRow row={scores} />
            {worstFirst(dimensionRows).map((row) => (
              <NumberRow key={row.name} row={row} />
            ))}
          </tbody>
          <tbody>
            {worstFirst(metricTable).map((row) => (
              <NumberRow key={row.name} row={row} />
            ))}
          </tbody>
        </table>
      </Wide>
      <Friction base={site.base} friction={friction} columns={columns} />
    </Layout>
  );
}

function NumberRow({ row }: { row: Row }) {
  const [first, last] = [row.values[0] ?? null, row.values.at(-1) ?? null];
  const change = first === null || last === null ? null : Number((last - first).toFixed(4));
  const loss = lossOf(row) ?? 0;
  const tone = change === null || change === 0 ? "" : loss > 0 ? "worse" : "better";
  return (
    <tr>
      <th scope="row">{row.name}</th>
      {row.values.map((value, i) => (
        <td key={i} class="number">
          {value === null ? "–" : row.words(value)}
        </td>
      ))}
      <td class={`number ${tone}`}>
        {change === null ? "–" : signed(change, (value) => row.words(Number(value.toFixed(2))))}
      </td>
    </tr>
  );
}

type Point = Comparison["friction"]["shared"][number] & { slugs?: string[] };

function Friction({ base, friction, columns }: { base: string; friction: Comparison["friction"]; columns: Column[] }) {
  const [first, last] = [columns[0]?.slug ?? "", columns.at(-1)?.slug ?? ""];
  const only: Point[] = friction.only;
  const inFirst = ({ slugs = [] }: Point) => slugs.includes(first);
  const inLast = ({ slugs = [] }: Point) => slugs.includes(last);
  const groups: [string, Point[]][] = [
    ["New in the last", only.filter((point) => inLast(point) && !inFirst(point))],
    ["Gone in the last", only.filter((point) => inFirst(point) && !inLast(point))],
    ["In some", only.filter((point) => inFirst(point) === inLast(point))],
    ["In all", friction.shared],
  ];
  return (
    <section>
      <h2 id="friction">
        Friction <small>{friction.total}</small>
      </h2>
      {friction.total === 0 && <p class="muted">Nothing stood in the way in any of them.</p>}
      {groups.map(
        ([name, points]) =>
          points.length > 0 && (
            <Wide key={name} label={name}>
              <table class="list compared">
                <thead>
                  <tr>
                    <th scope="col">
                      {name} <small>{points.length}</small>
                    </th>
                    {columns.map(({ slug }, i) => (
                      <th scope="col" key={slug} class="number">
                        <a href={`${base}/reports/${slug}#friction`} aria-label={`Report ${i + 1}: ${slug}`}>
                          {i + 1}
                        </a>
                      </th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {points.map((point) => (
                    <tr key={point.fingerprint} class={`severity-${point.severity}`}>
                      <th scope="row">
                        {line(point.title, 160)} <span class="pill severity">{point.severity}</span>
                        <small>{plain(point.category)}</small>
                      </th>
                      {columns.map(({ slug }) => (
                        <td key={slug} class="number">
                          {(point.slugs?.includes(slug) ?? true) ? "met" : "–"}
                        </td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
            </Wide>
          ),
      )}
    </section>
  );
}
