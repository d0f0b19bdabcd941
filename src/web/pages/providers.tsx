import type { Provider } from "../../providers/schema.ts";
import { Heads, toSorting, Wide } from "../components/figures.tsx";
import { Layout, Outside } from "../components/layout.tsx";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";

export type ProviderFields = { name: string; docsUrl: string; productUrl: string };

/** `typed` and `wrong`: the submitted values and the error, when the form was rejected. */
type Props = {
  site: Site;
  viewer: Viewer;
  providers: Provider[];
  sort?: string;
  typed?: ProviderFields;
  wrong?: string;
};

/** Providers of the organization. */
export function ProvidersPage({ site, site: { base }, viewer, providers, sort, typed, wrong }: Props) {
  return (
    <Layout site={site} viewer={viewer} path="/providers" title="Providers">
      <div class="toolbar">
        <h1>Providers</h1>
      </div>
      {providers.length === 0 ? (
        <div class="empty">
          <h2>No providers yet</h2>
          <p>
            A provider is a developer tool that you test. Runs of its prompts start at its docs URL, and the docs map
            shows which pages they read.
          </p>
        </div>
      ) : (
        <Wide label="Providers">
          <table class="list">
            <Heads
              labels={[
                { label: "Name", sort: "name" },
                { label: "Docs", sort: "docs" },
                { label: "Product", sort: "product" },
              ]}
              sorting={toSorting(`${base}/providers`, { sort }, "-created")}
            />
            <tbody>
              {providers.map(({ id, name, docsUrl, productUrl }) => (
                <tr key={id}>
                  <th scope="row">
                    <a href={`${base}/providers/${id}`}>{name}</a>
                  </th>
                  <td>{docsUrl && <Outside url={docsUrl} />}</td>
                  <td>{productUrl && <Outside url={productUrl} />}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Wide>
      )}
      {may(viewer, "providers") && (
        <section>
          <h2>New provider</h2>
          <ProviderForm action={`${base}/providers`} act="Add provider" fields={typed} wrong={wrong} />
        </section>
      )}
    </Layout>
  );
}

type FormProps = { action: string; act: string; fields?: ProviderFields; wrong?: string };

export const ProviderForm = ({ action, act, fields, wrong }: FormProps) => (
  <form method="post" action={action} class="narrow">
    {wrong && (
      <p class="notice bad" role="alert">
        {wrong}
      </p>
    )}
    <div class="field">
      <label for="name">Name</label>
      <input id="name" name="name" value={fields?.name} maxLength={200} required />
    </div>
    <div class="field">
      <label for="docsUrl">Docs URL</label>
      <input
        id="docsUrl"
        name="docsUrl"
        type="url"
        value={fields?.docsUrl}
        maxLength={2000}
        placeholder="https://docs.acme.example/"
      />
    </div>
    <div class="field">
      <label for="productUrl">Product or API base URL</label>
      <input id="productUrl" name="productUrl" type="url" value={fields?.productUrl} maxLength={2000} />
    </div>
    <button type="submit" class="main">
      {act}
    </button>
  </form>
);
