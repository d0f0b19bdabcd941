import type { Provider } from "../../providers/schema.ts";
import type { DocsMap } from "../../reports/docsmap.ts";
import { Layout, Outside } from "../layout.tsx";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";
import { numberWords } from "../words.ts";
import { Fact, Wide } from "./figures.tsx";
import { type ProviderFields, ProviderForm } from "./providers.tsx";

type Props = { site: Site; viewer: Viewer; provider: Provider; map: DocsMap; typed?: ProviderFields; wrong?: string };

const foundWords: Record<string, string> = {
  given: "given",
  llmsTxt: "llms.txt",
  sitemap: "sitemap",
  link: "linked",
  search: "search",
  guessed: "guessed",
};

/** A provider: how agents get around in its docs, what they never reach, what they guess. */
export function DocsMapPage({ site, viewer, provider, map, typed, wrong }: Props) {
  const { id, name, docsUrl, productUrl } = provider;
  const fields = typed ?? { name, docsUrl: docsUrl ?? "", productUrl: productUrl ?? "" };
  return (
    <Layout
      site={site}
      viewer={viewer}
      path={`/providers/${id}`}
      title={name}
      crumbs={[{ name: "Providers", path: "/providers" }, { name }]}
    >
      <h1>{name}</h1>
      <dl class="facts">
        <Fact name="Docs">{docsUrl ? <Outside url={docsUrl} /> : "none"}</Fact>
        <Fact name="Product">{productUrl ? <Outside url={productUrl} /> : "none"}</Fact>
        <Fact name="What stands in the way">
          <a href={`${site.base}/friction?providerId=${id}`}>Friction of all its prompts</a>
        </Fact>
      </dl>
      <h2 id="map">
        Docs map{" "}
        <small>
          {numberWords(map.runs)} runs from {map.since.slice(0, 10)} to {map.until.slice(0, 10)}
        </small>
      </h2>
      {map.runs === 0 ? (
        <p class="empty">
          No published run of its prompts in this time. Name this provider in a prompt and run it: the map draws itself.
        </p>
      ) : (
        <Pages base={site.base} map={map} scope={`providerId=${id}`} />
      )}
      {may(viewer, "providers") && (
        <details class="more" open={wrong !== undefined}>
          <summary>Change this provider</summary>
          <ProviderForm action={`${site.base}/providers/${id}`} act="Save" fields={fields} wrong={wrong} />
        </details>
      )}
    </Layout>
  );
}

const pathOf = (url: string): string => {
  const { pathname, search } = URL.parse(url) ?? { pathname: url, search: "" };
  return pathname + search;
};

const Pages = ({ base, map, scope }: { base: string; map: DocsMap; scope: string }) => (
  <>
    <Wide label="Pages that were read">
      <table class="list map">
        <thead>
          <tr>
            <th scope="col">
              Page <small>{numberWords(map.totals.pages)} read</small>
            </th>
            <th scope="col">Runs that read it</th>
            <th scope="col">How it was found</th>
            <th scope="col" class="number">
              Then something failed
            </th>
            <th scope="col">What stands on it</th>
          </tr>
        </thead>
        <tbody>
          {map.pages.map(({ url, runs, reads, found, errorsAfter, friction }) => (
            <tr key={url}>
              <th scope="row" title={url}>
                {pathOf(url)}
              </th>
              <td>
                <Share part={runs} whole={map.runs} />
              </td>
              <td>
                {Object.entries(found)
                  .filter(([, n]) => n > 0)
                  .map(([how, n]) => `${foundWords[how] ?? how} ${n}`)
                  .join(", ")}
              </td>
              <td class={`number${errorsAfter > 0 ? " worse" : ""}`}>
                {errorsAfter === 0 ? "–" : `${errorsAfter} of ${reads}`}
              </td>
              <td>
                {friction.map(({ fingerprint, severity, title }) => (
                  <a
                    key={fingerprint}
                    class={`pill severity severity-${severity}`}
                    href={`${base}/friction/${fingerprint}?${scope}`}
                    title={title}
                    aria-label={`${severity}: ${title}`}
                  >
                    {severity}
                  </a>
                ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
    <div class="pair">
      <section>
        <h2>
          Never reached <small>{numberWords(map.totals.unreached)}</small>
        </h2>
        <p class="muted">Pages that the docs name and no run read.</p>
        <Wide label="Never reached">
          <ul class="addresses">
            {map.unreached.map(({ url, namedBy }) => (
              <li key={url}>
                <code title={url}>{pathOf(url)}</code> <small>{namedBy.join(", ")}</small>
              </li>
            ))}
          </ul>
        </Wide>
      </section>
      <section>
        <h2>
          Guessed and missed <small>{numberWords(map.totals.guessed)}</small>
        </h2>
        <p class="muted">Addresses that agents expect, and that are not there.</p>
        <Wide label="Guessed and missed">
          <ul class="addresses">
            {map.guessed.map(({ url, misses }) => (
              <li key={url}>
                <code title={url}>{pathOf(url)}</code>{" "}
                <small>
                  {misses} {misses === 1 ? "time" : "times"}
                </small>
              </li>
            ))}
          </ul>
        </Wide>
      </section>
    </div>
  </>
);

/** A count as a bar beside its number. */
const Share = ({ part, whole }: { part: number; whole: number }) => (
  <span class="share">
    <svg class="track" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="rest" width="100" height="8" />
      <rect class="done" width={(100 * part) / Math.max(1, whole)} height="8" />
    </svg>
    {numberWords(part)}
  </span>
);
