import { count } from "../../grading/text.ts";
import type { ChangedPage, Explanation } from "../../inbox/schema.ts";
import { withSign } from "../components/baseline.tsx";
import { ScoreLine } from "../components/charts.tsx";
import { ExternalLink, Layout } from "../components/layout.tsx";
import { Day } from "../components/when.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

type Props = { site: Site; viewer: Viewer; explanation: Explanation };

const signed = (points: number) => withSign(points, (value) => value.toFixed(1));

/** Why the score of a prompt changed: both sides, the friction that came or went, and what changed on the pages. */
export function WhyPage({ site, viewer, explanation }: Props) {
  const { base } = site;
  const { prompt, kind, agent, model, delta, since, before, after, pages } = explanation;
  const title = kind === "score_fell" ? "Why it got worse" : "Why it got better";
  const [first] = after.evaluations;
  const last = before.evaluations.at(-1);
  return (
    <Layout
      site={site}
      viewer={viewer}
      path={`/prompts/${prompt.id}/why`}
      title={`${title}: ${prompt.title}`}
      crumbs={[{ name: prompt.title, path: `/prompts/${prompt.id}` }, { name: title }]}
    >
      <h1>{title}</h1>
      <p class="lead">
        <strong class={delta < 0 ? "bad" : "good"}>{signed(delta)} points</strong> since <Day at={since} />: from{" "}
        {before.mean.toFixed(1)} to {after.mean.toFixed(1)}, with {[agent, model].filter(Boolean).join(" and ")}.{" "}
        {count(before.runs, "run")} before, {count(after.runs, "run")} after.
      </p>
      <p>
        {first && (
          <a class="button main" href={`${base}/reports/${first.slug}#advice`}>
            Open the fixes
          </a>
        )}{" "}
        {first && last && (
          <a class="button" href={`${base}/compare?slugs=${last.slug},${first.slug}`}>
            Compare two runs
          </a>
        )}
      </p>
      <Evaluations {...{ base, explanation }} />
      <Causes {...{ base, explanation }} />
      <section aria-labelledby="pages">
        <h2 id="pages">What changed on the pages that agents read</h2>
        {pages.length === 0 && (
          <p class="muted">
            The pages that both the last run before the change and the first one after it read have the same text.
          </p>
        )}
        {pages.map((page) => (
          <PageDiff key={page.url} page={page} />
        ))}
      </section>
    </Layout>
  );
}

const Causes = ({
  base,
  explanation: { causes, unexplained, delta, before, after },
}: Omit<Props, "site" | "viewer"> & { base: string }) => (
  <section aria-labelledby="causes">
    <h2 id="causes">What explains it</h2>
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
            <td class="number">{points === null ? "–" : signed(points)}</td>
          </tr>
        ))}
        <tr>
          <td class="title">Not explained by friction</td>
          <td class="number" />
          <td class="number" />
          <td class="number">{signed(unexplained)}</td>
        </tr>
        <tr>
          <th scope="row">Change of the score</th>
          <td class="number">{before.mean.toFixed(1)}</td>
          <td class="number">{after.mean.toFixed(1)}</td>
          <td class="number">{signed(delta)}</td>
        </tr>
      </tbody>
    </table>
    <p class="hint">Friction counts for the share of runs that hit it on one side but not on the other.</p>
  </section>
);

function Evaluations({ base, explanation: { before, after } }: Omit<Props, "site" | "viewer"> & { base: string }) {
  const evaluations = [...before.evaluations, ...after.evaluations];
  const points = evaluations.map(({ score, at }) => ({
    score,
    name: `${score.toFixed(1)}, ${at.slice(0, 10)}`,
    day: at.slice(0, 10),
  }));
  return (
    <section aria-labelledby="evaluations">
      <h2 id="evaluations">Evaluations before and after</h2>
      <ScoreLine
        points={points}
        label={`Scores, oldest first: ${points.map(({ score }) => score.toFixed(0)).join(", ")}`}
      />
      <details>
        <summary>All {evaluations.length} evaluations</summary>
        <ul>
          {evaluations.map(({ evalRequestId, slug, score, runs, at }) => (
            <li key={evalRequestId}>
              <a href={`${base}/reports/${slug}`}>{score.toFixed(1)}</a>{" "}
              <span class="soft">
                <Day at={at} />, {count(runs, "run")},{" "}
                {before.evaluations.some((each) => each.evalRequestId === evalRequestId) ? "before" : "after"}
              </span>
            </li>
          ))}
        </ul>
      </details>
    </section>
  );
}

const PageDiff = ({ page: { url, lines } }: { page: ChangedPage }) => (
  <figure class="page-diff">
    <figcaption>
      <ExternalLink url={url} />
    </figcaption>
    <pre class="diff">
      {lines.map(({ change, text }, i) => {
        const Tag = change === "added" ? "ins" : change === "removed" ? "del" : "span";
        return (
          <Tag key={i}>
            {change === "added" ? "+ " : change === "removed" ? "− " : "  "}
            {text}
            {"\n"}
          </Tag>
        );
      })}
    </pre>
  </figure>
);
