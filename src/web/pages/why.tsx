import { count, dollars, duration, shortUrl, signedPoints } from "../../grading/text.ts";
import type { ChangedPage, ScoreChangeExplanation, SessionStep } from "../../inbox/schema.ts";
import { frictionLabels } from "../../reports/labels.ts";
import type { Report } from "../../reports/schema.ts";
import { toChangeHref } from "../components/change-links.ts";
import { ScoreChart } from "../components/charts.tsx";
import { ScrollArea } from "../components/figures.tsx";
import { Fixes, type Verification } from "../components/fixes.tsx";
import { ExternalLink, Layout } from "../components/layout.tsx";
import { SegmentBar } from "../components/score-bar.tsx";
import { Day } from "../components/when.tsx";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

type Props = {
  site: Site;
  viewer: Viewer;
  explanation: ScoreChangeExplanation;
  /** A report on one side of the change. It contains only the fixes for the causes of the change. */
  report: Report;
  verifications: ReadonlyMap<string, Verification> | null;
  /** Whether the newest significant change is explained, and not a change between two chosen windows. */
  isNewest: boolean;
};
type PartProps = { base: string; explanation: ScoreChangeExplanation };

/**
 * Why the score of a prompt changed: both sides, the causes of the lost or gained points, the pages, what agents did before and after, and the fixes.
 */
export function WhyPage({ site, viewer, explanation, report, verifications, isNewest }: Props) {
  const { base } = site;
  const { prompt, kind, agent, model, delta, low, high, since, before, after, pages } = explanation;
  const title = kind === "score_fell" ? "Why it got worse" : "Why it got better";
  const hasInterval = low !== null && high !== null && low !== high;
  const path = `/reports/${report.slug}`;
  return (
    <Layout
      site={site}
      viewer={viewer}
      path={`/prompts/${prompt.id}/why`}
      title={`${title}: ${prompt.title}`}
      crumbs={[{ name: prompt.title, path: `/prompts/${prompt.id}` }, { name: title }]}
    >
      <h1>
        {prompt.title} {kind === "score_fell" ? "fell" : "rose"} from {before.mean.toFixed(1)} to{" "}
        {after.mean.toFixed(1)}
      </h1>
      <p class="lead">
        <strong class={delta < 0 ? "bad" : "good"}>{signedPoints(delta)} points</strong>
        {hasInterval && ` (95% CI ${signedPoints(low)} to ${signedPoints(high)})`} since <Day at={since} />.{" "}
        {count(before.runs, "run")} before, {count(after.runs, "run")} after, with{" "}
        {[agent, model].filter(Boolean).join(" and ")}.
      </p>
      {isNewest && (
        <p class="soft">
          The agent version, the name of the model and the methodology are the same on both sides. So the docs or the
          product changed, or the provider changed the model under the same name.
        </p>
      )}
      <p class="acts">
        <a class="button main" href={toChangeHref(base, { agent, model }, explanation)}>
          Compare before and after
        </a>{" "}
        <a class="button" href={`${base}${path}`}>
          {explanation.causes.length > 0 ? "Open a report with the largest cause" : "Open the first report after it"}
        </a>{" "}
        {may(viewer, "run") && (
          <a class="button" href={`${base}/bisects/new?prompt=${prompt.id}`}>
            Find the commit
          </a>
        )}{" "}
        {may(viewer, "share") && (
          <a class="button" href={`${base}${path}#share`}>
            Share
          </a>
        )}
      </p>
      <Causes {...{ base, explanation }} />
      <section aria-labelledby="pages">
        <h2 id="pages">What changed on the pages</h2>
        {pages.length === 0 && (
          <p class="muted">
            The last run before the change and the first run after it got the same result for every page that both
            requested.
          </p>
        )}
        {pages.map((page) => (
          <PageDiff key={page.url} page={page} />
        ))}
      </section>
      <AgentSteps {...{ base, explanation }} />
      {kind === "score_fell" && (
        <Fixes
          report={report}
          labels={frictionLabels(report)}
          base={base}
          path={`${base}${path}`}
          session={`${base}${path}/session`}
          verifications={verifications}
          mayDismiss={may(viewer, "write")}
        />
      )}
      <Evaluations {...{ base, explanation }} />
    </Layout>
  );
}

/** The points of the change as one bar. Points in the other direction are left out. */
function PointsBar({ explanation }: Omit<PartProps, "base">) {
  const { causes, agentPoints, networkPoints, unexplained, delta } = explanation;
  const segments = [
    ...causes.map(({ title, points }) => ({ name: title, points: points ?? 0, look: "segment-fix" })),
    { name: "The agent’s own mistakes", points: agentPoints, look: "segment-agent" },
    { name: "Network", points: networkPoints, look: "segment-network" },
    { name: "Unexplained", points: unexplained, look: "segment-unmeasured" },
  ].filter(({ points }) => points * delta > 0);
  const total = segments.reduce((sum, { points }) => sum + Math.abs(points), 0);
  return (
    <figure class="score-bar">
      <SegmentBar
        segments={segments.map(({ name, points, look }) => ({ name, look, share: Math.abs(points) / total }))}
      />
      <figcaption>
        <ul aria-label="Points by cause">
          {segments.map(({ name, points, look }) => (
            <li key={name} class={look}>
              <i class="key" />
              {name} <strong>{signedPoints(points)}</strong>
            </li>
          ))}
        </ul>
      </figcaption>
    </figure>
  );
}

/** What agents did before and after the change, with one line for each. */
function AgentSteps({ base, explanation: { before, after } }: PartProps) {
  const sides = [
    { name: "Before", session: before.session },
    { name: "After", session: after.session },
  ];
  return (
    <section aria-labelledby="steps">
      <h2 id="steps">What agents did</h2>
      <dl class="facts agent-steps">
        {sides.map(
          ({ name, session }) =>
            session && (
              <div key={name} data-side={name.toLowerCase()}>
                <dt>{name}</dt>
                <dd>
                  {session.steps.map((step, i) => (
                    <span key={i}>
                      {i > 0 && " → "}
                      <Step {...step} />
                    </span>
                  ))}{" "}
                  <a class="soft" href={`${base}/reports/${session.slug}/session`}>
                    {[
                      count(session.calls, "call"),
                      session.costUsd ? dollars(session.costUsd) : null,
                      session.seconds === null ? null : duration(session.seconds),
                    ]
                      .filter(Boolean)
                      .join(", ")}
                  </a>
                </dd>
              </div>
            ),
        )}
      </dl>
    </section>
  );
}

/** "read /docs/auth 2 times" */
function describeStep({ role, what, times }: SessionStep): string {
  if (role === "guess") return `guessed ${times === 1 ? shortUrl(what) : count(times, "page")}`;
  const action = role === "read" ? `read ${shortUrl(what)}` : what;
  return times > 1 ? `${action} ${times} times` : action;
}

function Step(step: SessionStep) {
  const { role, status } = step;
  const isFailed = status !== null && status >= 400;
  const result = isFailed ? "failed" : "worked";
  return (
    <span class={`step-of-${role === "read" ? "read" : result}`}>
      {describeStep(step)}
      {status !== null && (role !== "read" || isFailed) && (
        <>
          {" "}
          <strong>{status}</strong>
        </>
      )}
    </span>
  );
}

const Causes = ({ base, explanation }: PartProps) => {
  const { causes, agentPoints, networkPoints, unexplained, delta, before, after } = explanation;
  return (
    <section aria-labelledby="causes">
      <h2 id="causes">What explains it</h2>
      <PointsBar explanation={explanation} />
      <ScrollArea label="What explains it">
        <table class="list">
          <thead>
            <tr>
              <th>Friction</th>
              <th class="number">Before</th>
              <th class="number">After</th>
              <th class="number">Points</th>
            </tr>
          </thead>
          <tbody>
            {causes.map(({ fingerprint, title, url, line, points, slug, ...share }) => (
              <tr key={fingerprint} data-fingerprint={fingerprint}>
                <td class="title">
                  <a class="plain" href={`${base}/reports/${slug}#friction`}>
                    {title}
                  </a>
                  {url && (
                    <p class="soft">
                      <ExternalLink url={url} />
                      {line !== null && `, line ${line}`}
                    </p>
                  )}
                </td>
                <td class="number">
                  {share.before.met} of {share.before.of}
                </td>
                <td class="number">
                  {share.after.met} of {share.after.of}
                </td>
                <td class="number">{points === null ? "–" : signedPoints(points)}</td>
              </tr>
            ))}
            <Rest name="The agent’s own mistakes" owner="agent" points={agentPoints} />
            <Rest name="Network" owner="network" points={networkPoints} />
            <Rest name="Unexplained" owner="unexplained" points={unexplained} />
            <tr>
              <th scope="row">Change of the score</th>
              <td class="number">{before.mean.toFixed(1)}</td>
              <td class="number">{after.mean.toFixed(1)}</td>
              <td class="number">{signedPoints(delta)}</td>
            </tr>
          </tbody>
        </table>
      </ScrollArea>
      <p class="hint">Each friction point counts by the share of runs that hit it on one side but not on the other.</p>
    </section>
  );
};

const Rest = ({ name, owner, points }: { name: string; owner: string; points: number }) => (
  <tr data-owner={owner}>
    <td class="title">{name}</td>
    <td class="number" />
    <td class="number" />
    <td class="number">{signedPoints(points)}</td>
  </tr>
);

function Evaluations({ base, explanation: { before, after } }: PartProps) {
  const evaluations = [
    ...before.evaluations.map((each) => ({ ...each, side: "before" })),
    ...after.evaluations.map((each) => ({ ...each, side: "after" })),
  ];
  const points = evaluations.map(({ score, at }) => ({
    score,
    name: `${score.toFixed(1)}, ${at.slice(0, 10)}`,
    day: at.slice(0, 10),
  }));
  return (
    <section aria-labelledby="evaluations">
      <h2 id="evaluations">Evaluations before and after</h2>
      <ScoreChart
        points={points}
        label={`Scores, oldest first: ${points.map(({ score }) => score.toFixed(0)).join(", ")}`}
      />
      <details>
        <summary>All {evaluations.length} evaluations</summary>
        <ul>
          {evaluations.map(({ evalRequestId, slug, score, runs, at, side }) => (
            <li key={evalRequestId}>
              <a href={`${base}/reports/${slug}`}>{score.toFixed(1)}</a>{" "}
              <span class="soft">
                <Day at={at} />, {count(runs, "run")}, {side}
              </span>
            </li>
          ))}
        </ul>
      </details>
    </section>
  );
}

/** "could be read, then returned 404". At least one side could read the page. */
function pageChange({ before, after }: ChangedPage): string {
  const problemOf = ({ status }: ChangedPage["before"]) =>
    status === null || status < 400 ? "could not be read" : `returned ${status}`;
  if (before.isRead && !after.isRead) return `could be read, then ${problemOf(after)}`;
  if (!before.isRead) return `${problemOf(before)}, then could be read`;
  if (before.chars === null || after.chars === null || before.chars === after.chars) return "has another text";
  return `had ${thousands(before.chars)} characters, then ${thousands(after.chars)}`;
}

const thousands = (n: number) => n.toLocaleString("en");

const PageDiff = ({ page, page: { url, lines } }: { page: ChangedPage }) => (
  <figure class="page-diff" data-page={url}>
    <figcaption>
      <ExternalLink url={url} /> <span class="soft">{pageChange(page)}</span>
    </figcaption>
    {lines.length > 0 && <PageLines lines={lines} />}
  </figure>
);

/** For each kind of line: its HTML element, and the prefix of its text. */
const lineMarks = { added: ["ins", "+ "], removed: ["del", "− "], none: ["span", "  "] } as const;

const PageLines = ({ lines }: { lines: ChangedPage["lines"] }) => (
  <pre class="diff">
    {lines.map(({ change, text }, i) => {
      const [Tag, mark] = lineMarks[change];
      return (
        <Tag key={i}>
          {mark}
          {text}
          {"\n"}
        </Tag>
      );
    })}
  </pre>
);
