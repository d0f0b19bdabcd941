import { oneLine } from "../../grading/text.ts";
import { foreignText, Layout } from "../components/layout.tsx";
import { Day } from "../components/when.tsx";
import type { Site } from "../site.ts";
import type { Viewer } from "../viewer.ts";

/** A search result to open. `path`: without the base path. */
export type Hit = {
  kind: "Page" | "Action" | "Prompt" | "Report" | "Run" | "Docs";
  title: string;
  path: string;
  at?: string;
};

type Props = { site: Site; hits: Hit[] };

/** The search results as a list of links. */
export const Hits = ({ site: { base }, hits }: Props) =>
  hits.length === 0 ? (
    <p class="empty" id="hits">
      Nothing found. Try the title of a prompt, or the ID of a run or report.
    </p>
  ) : (
    <ul class="hits" id="hits">
      {hits.map(({ kind, title, path, at }) => (
        <li key={kind + path}>
          <a href={base + path}>
            <span {...foreignText}>{oneLine(title, 100)}</span>{" "}
            <small>
              {kind}
              {at && (
                <>
                  , <Day at={at} />
                </>
              )}
            </small>
          </a>
        </li>
      ))}
    </ul>
  );

/** The search as its own page. With JavaScript, it is a dialog on every page. */
export const SearchPage = ({ viewer, text, ...props }: Props & { viewer: Viewer; text: string }) => (
  <Layout site={props.site} viewer={viewer} path="/search" title="Search">
    <h1>Search</h1>
    <form method="get" action={`${props.site.base}/search`} class="toolbar filters">
      <input
        type="search"
        name="q"
        value={text}
        maxLength={200}
        aria-label="Search prompts, reports, runs and pages"
        placeholder="Prompt, report, run or page"
      />
      <button type="submit">Search</button>
    </form>
    <Hits {...props} />
  </Layout>
);
