import { Layout } from "../layout.tsx";
import { type Site, summary } from "../site.ts";

/** What this is and where to go from here. */
export function HomePage({ site }: { site: Site }) {
  const { base, baseUrl } = site;
  return (
    <Layout site={site} path="/" title="evald" description={summary} isPublic>
      <div class="home">
        <h1>How well do AI agents get along with your developer tool?</h1>
        <p class="lead">
          Describe a task with an end goal. An agent is sent to do it with nothing but your documentation and your
          product. You get a graded report: what stood in its way, the events that prove it, and what to change first.
        </p>
        <ul class="ways">
          <li>
            <a href={`${base}/docs/start`}>First five minutes</a>
            <span>From an API key to a report, with curl.</span>
          </li>
          <li>
            <a href={`${base}/docs`}>Documentation</a>
            <span>Prompts, runs, reports, the API, running it for real.</span>
          </li>
          <li>
            <a href={`${base}/openapi.json`}>OpenAPI description</a>
            <span>Every operation, field and example, as OpenAPI 3.1.</span>
          </li>
          <li>
            <a href={`${base}/llms.txt`}>llms.txt</a>
            <span>The documentation for agents, as Markdown.</span>
          </li>
        </ul>
        <h2>See a report</h2>
        <p>
          Every run has a page at <code>{baseUrl}/runs/…</code> and every report one at <code>{baseUrl}/reports/…</code>
          . The API names both addresses. <a href={`${base}/sign-in`}>Sign in</a> to see them; programs send an API key:
        </p>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached without a mouse */}
        <pre tabIndex={0}>
          <code class="language-bash">{`curl -H "Authorization: Bearer $EVALD_KEY" \\\n  "${baseUrl}/api/v1/runs?limit=1"`}</code>
        </pre>
      </div>
    </Layout>
  );
}
