import { count } from "../../grading/text.ts";
import { describeMethodology } from "../../reports/differences.ts";
import { agentLabel, outcomeLabels, scoreText } from "../../reports/labels.ts";
import type { Report } from "../../reports/schema.ts";
import { Sparkline } from "../components/charts.tsx";
import { GradeMark, TableHead } from "../components/figures.tsx";
import { foreignText, Layout } from "../components/layout.tsx";
import { type PublicScore, staleDays } from "../public-score.ts";
import type { Site } from "../site.ts";

/** What the public sees of a prompt. `result`: null if it has no published report. */
export type PublicResult = {
  title: string;
  result: { agent: Report["agent"]; methodology: Report["methodology"]; current: PublicScore; scores: number[] } | null;
};

type Props = { site: Site; path: string; orgName: string; results: PublicResult[] };

/** The prompts that an organization has chosen to publish, with their grade, trend and method. Everyone with the URL can see the page. */
export const ResultsPage = ({ site, path, orgName, results }: Props) => (
  <Layout
    {...{ site, path }}
    publisher={orgName}
    title={`${orgName}: results`}
    description={`How well AI agents can use ${orgName}.`}
  >
    <h1>{orgName}: results</h1>
    <p>
      How well AI agents can use the docs and product of {orgName}, measured with evald. Each result is from the day in
      the column Evaluated. After {staleDays} days without a new one, it is marked as outdated.{" "}
      <a href={`${site.base}/docs/scoring`}>How scores are computed</a>
    </p>
    {results.length === 0 ? (
      <p class="muted">No results yet.</p>
    ) : (
      <table class="list scores results">
        <TableHead labels={["Task", "Result", "Trend", "Evaluated", "Method"]} />
        <tbody>
          {results.map(({ title, result }, i) => (
            <tr key={`${i} ${title}`}>
              <th scope="row" class="title" {...foreignText}>
                {title}
              </th>
              {result === null ? (
                <td colSpan={4} class="muted">
                  No result yet
                </td>
              ) : (
                <Result title={title} {...result} />
              )}
            </tr>
          ))}
        </tbody>
      </table>
    )}
  </Layout>
);

const Result = ({
  title,
  current: { score, grade, scope, outcome, runs, day, isStale, isSingle },
  scores,
  agent,
  methodology,
}: NonNullable<PublicResult["result"]> & { title: string }) => (
  <>
    <td>
      <span class="result">
        <GradeMark grade={grade} />
        <span>{scoreText({ score, scope })}</span>
      </span>
      {grade === null && <small class="soft">{outcomeLabels[outcome]}</small>}
    </td>
    <td>
      <Sparkline scores={scores} subject={title} />
    </td>
    <td>
      <time dateTime={day}>{day}</time>
      {isStale && " (outdated)"}
      <small class="soft">{isSingle ? "single run" : count(runs, "run")}</small>
    </td>
    <td class="how">
      {agentLabel({ ...agent, contextDigest: null })}
      <small class="soft">Methodology {describeMethodology(methodology)}</small>
    </td>
  </>
);
