import { Layout } from "../components/layout.tsx";
import { summary } from "../crawler-files.ts";
import type { Site } from "../site.ts";
import { SetupNote } from "./sign-in.tsx";

/** Landing page for visitors who are not signed in. `isUnused`: nobody has an account yet. */
export function HomePage({ site, isUnused }: { site: Site; isUnused: boolean }) {
  const { base, baseUrl } = site;
  return (
    <Layout site={site} path="/" title="evald" description={summary} isPublic>
      <div class="home">
        <h1>See where AI agents get stuck in your docs</h1>
        <p class="lead">
          Describe a task with an end goal. evald sends an agent to do it with nothing but your documentation and your
          product. You get a graded report: where the agent got stuck, the evidence and what to fix first.
        </p>
        {isUnused && <SetupNote />}
        <ul class="ways">
          <li>
            <a href={`${base}/docs/start`}>Getting started</a>
            <span>From an API key to your first report, with curl.</span>
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
        <h2>Your reports</h2>
        <p>
          <a href={`${base}/sign-in`}>Sign in</a> to view runs at <code>{baseUrl}/runs/…</code> and reports at{" "}
          <code>{baseUrl}/reports/…</code>. The API returns both URLs. Scripts send an API key:
        </p>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard */}
        <pre tabIndex={0}>
          <code class="language-bash">{`curl -H "Authorization: Bearer $EVALD_KEY" \\\n  "${baseUrl}/api/v1/runs?limit=1"`}</code>
        </pre>
      </div>
    </Layout>
  );
}
