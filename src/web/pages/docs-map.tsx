import type { DocsMap } from "../../friction/docs-map.ts";
import { count, oneLine } from "../../grading/text.ts";
import type { Provider } from "../../providers/schema.ts";
import { formatNumber } from "../../reports/labels.ts";
import type { FieldTraffic } from "../../traffic/schema.ts";
import { FieldTrafficSection } from "../components/field-traffic.tsx";
import { Fact, ScrollArea } from "../components/figures.tsx";
import { ExternalLink, Layout } from "../components/layout.tsx";
import { PageList, pathOf } from "../components/page-list.tsx";
import { Day } from "../components/when.tsx";
import { may, type PageProps } from "../viewer.ts";
import { ProviderForm } from "./providers.tsx";
import type { FormResult } from "./settings.tsx";

type Props = PageProps & { provider: Provider; map: DocsMap; traffic: FieldTraffic; rejected?: FormResult };

const provenanceLabels: Record<string, string> = {
  given: "start URL",
  llmsTxt: "llms.txt",
  sitemap: "sitemap",
  link: "linked",
  search: "search result",
  guessed: "guessed URL",
};

/** A provider with its docs map: pages that were read, pages that were never opened, and guessed URLs. */
export function DocsMapPage({ site, viewer, provider, map, traffic, rejected }: Props) {
  const { id, name, docsUrl, productUrl } = provider;
  return (
    <Layout
      {...{ site, viewer }}
      path={`/providers/${id}`}
      title={name}
      crumbs={[{ name: "Providers", path: "/providers" }, { name }]}
    >
      <h1>{name}</h1>
      <dl class="facts">
        <Fact name="Docs">{docsUrl ? <ExternalLink url={docsUrl} /> : "None"}</Fact>
        <Fact name="Product">{productUrl ? <ExternalLink url={productUrl} /> : "None"}</Fact>
        <Fact name="Friction">
          <a href={`${site.base}/friction?providerId=${id}`}>View friction for all prompts</a>
        </Fact>
      </dl>
      <h2 id="map">
        Docs map{" "}
        <small>
          {formatNumber(map.runs)} runs, <Day at={map.since} /> to <Day at={map.until} />
        </small>
      </h2>
      {map.runs === 0 ? (
        <p class="empty">No runs in this period. Select this provider in a prompt and run it.</p>
      ) : (
        <Pages base={site.base} map={map} scope={`providerId=${id}`} />
      )}
      {docsUrl && <FieldTrafficSection base={site.base} {...{ traffic, docsUrl }} mayPropose={may(viewer, "run")} />}
      {may(viewer, "providers") && (
        <details class="more" open={rejected !== undefined}>
          <summary>Edit provider</summary>
          <ProviderForm
            action={`${site.base}/providers/${id}`}
            buttonText="Save provider"
            {...{ provider }}
            {...rejected}
          />
        </details>
      )}
    </Layout>
  );
}

const Pages = ({ base, map, scope }: { base: string; map: DocsMap; scope: string }) => (
  <>
    <ScrollArea label="Pages read">
      <table class="list stacked map">
        <thead>
          <tr>
            <th scope="col">
              Page <small>{formatNumber(map.totals.pages)} read</small>
            </th>
            <th scope="col">Runs</th>
            <th scope="col">Found via</th>
            <th scope="col" class="number">
              Failures after reading
            </th>
            <th scope="col">Issues</th>
          </tr>
        </thead>
        <tbody>
          {map.pages.map(({ url, runs, reads, found, errorsAfter, friction }) => (
            <tr key={url}>
              <th scope="row" title={url}>
                {pathOf(url)}
              </th>
              <td data-label="Runs">
                <Share part={runs} whole={map.runs} />
              </td>
              <td data-label="Found via">
                {Object.entries(found)
                  .filter(([, n]) => n > 0)
                  .map(([provenance, n]) => `${provenanceLabels[provenance] ?? provenance} ${n}`)
                  .join(", ")}
              </td>
              <td class={`number${errorsAfter > 0 ? " worse" : ""}`} data-label="Failures after reading">
                {errorsAfter === 0 ? "–" : `${errorsAfter} of ${reads}`}
              </td>
              <td data-label={friction.length > 0 ? "Issues" : undefined}>
                {friction.map(({ fingerprint, severity, title }) => (
                  <a
                    key={fingerprint}
                    class={`pill severity severity-${severity}`}
                    href={`${base}/friction/${fingerprint}?${scope}`}
                    title={title}
                  >
                    {oneLine(title, 40)} <span class="visually-hidden">({severity})</span>
                  </a>
                ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollArea>
    <div class="pair">
      <PageList
        title="Never opened"
        text="Pages linked in your docs that no run opened."
        total={map.totals.unreached}
        items={map.unreached.map(({ url, listedBy }) => ({ url, note: listedBy.join(", ") }))}
      />
      <PageList
        title="Guessed URLs (404)"
        text="URLs agents tried that don’t exist."
        total={map.totals.guessed}
        items={map.guessed.map(({ url, misses }) => ({ url, note: count(misses, "time") }))}
      />
    </div>
  </>
);

/** A number with a bar that shows its share. */
const Share = ({ part, whole }: { part: number; whole: number }) => (
  <span class="share">
    <svg class="track" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="rest" width="100" height="8" />
      <rect class="done" width={(100 * part) / Math.max(1, whole)} height="8" />
    </svg>
    {formatNumber(part)}
  </span>
);
