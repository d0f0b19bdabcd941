import { count } from "../../grading/text.ts";
import type { PagesVisited } from "../../reports/pages-visited.ts";
import type { Report } from "../../reports/schema.ts";
import { Diff } from "../components/fixes.tsx";
import { Layout } from "../components/layout.tsx";
import { PathTaken } from "../components/pages-visited.tsx";
import { ScoreLine } from "../components/report-head.tsx";
import { ScoreBar } from "../components/score-bar.tsx";
import { summary } from "../crawler-files.ts";
import { countPlantedMistakes, describeMistakes, exampleReport } from "../example.ts";
import type { Site } from "../site.ts";
import { SetupNote } from "./sign-in.tsx";

/** The landing page for visitors who are not signed in. `isUnused`: whether nobody has an account yet. */
export function HomePage({ site, isUnused }: { site: Site; isUnused: boolean }) {
  const { base } = site;
  return (
    <Layout site={site} path="/" title="evald" description={summary} isPublic>
      <div class="home">
        <div class="pitch">
          <div>
            <h1>See where AI agents get stuck in your docs</h1>
            <p class="lead">
              Give evald a docs URL and a task. An agent tries it, and you get the page, the line and the fix.
            </p>
            {isUnused ? (
              <SetupNote />
            ) : (
              <p>Sign in to test your own docs. No account? Ask an owner of your organization to invite you.</p>
            )}
            <p class="acts">
              <a class={isUnused ? "button" : "button main"} href={`${base}/sign-in`}>
                Sign in
              </a>
              <a class={isUnused ? "button main" : "button"} href={`${base}/example-report`}>
                Open the example report
              </a>
            </p>
          </div>
          <ReportExtract site={site} {...exampleReport(site)} />
        </div>
        <ul class="ways">
          <li>
            <a href={`${base}/docs/start`}>Getting started</a>
            <span>From the setup link or an API key to your first report.</span>
          </li>
          <li>
            <a href={`${base}/docs`}>Documentation</a>
            <span>Prompts, runs, reports, the API and running evald in production.</span>
          </li>
          <li>
            <a href={`${base}/openapi.json`}>OpenAPI description</a>
            <span>Every operation and field, with examples, in OpenAPI 3.1.</span>
          </li>
          <li>
            <a href={`${base}/llms.txt`}>llms.txt</a>
            <span>Documentation index for agents, in Markdown.</span>
          </li>
        </ul>
      </div>
    </Layout>
  );
}

/** The most important parts of a report: the result, the lost points, the path of the agent, and the fixes with one diff. */
function ReportExtract({ site, report, pagesVisited }: { site: Site; report: Report; pagesVisited: PagesVisited }) {
  const mistakes = countPlantedMistakes(report, site);
  const fixes = report.recommendations;
  const withDiff = fixes.find(({ evidence }) => evidence?.expected);
  return (
    <section class="extract report" aria-labelledby="extract">
      <p class="pills">
        <span class="pill product">{report.product.name}</span>
        {mistakes && <span class="pill planted">{describeMistakes(mistakes)}</span>}
      </p>
      <h2 id="extract">{report.keyFinding}</h2>
      <p class="score-line">
        <ScoreLine report={report} />
      </p>
      <ScoreBar report={report} />
      <PathTaken pagesVisited={pagesVisited} session={null} />
      <ol>
        {fixes.map((fix) => (
          <li key={fix.id} id={`fix-${fix.priority}`}>
            {fix.title}
            {fix.evidence?.line && <span class="soft">, line {fix.evidence.line}</span>}{" "}
            {fix.lostPoints !== null && <span class="gain">+{count(fix.lostPoints, "point")}</span>}
            {fix === withDiff && <Diff id="extract-diff" evidence={fix.evidence} />}
          </li>
        ))}
      </ol>
    </section>
  );
}
