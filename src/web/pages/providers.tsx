import type { Provider } from "../../providers/schema.ts";
import { Layout, Outside } from "../layout.tsx";
import type { Site } from "../site.ts";
import { may, type Viewer } from "../viewer.ts";
import { Heads, Wide } from "./figures.tsx";

export type ProviderFields = { name: string; docsUrl: string; productUrl: string };

/** `typed` and `wrong`: what somebody sent, and why it was not taken. */
type Props = { site: Site; viewer: Viewer; providers: Provider[]; typed?: ProviderFields; wrong?: string };

/** The developer tools under evaluation. */
export function ProvidersPage({ site, site: { base }, viewer, providers, typed, wrong }: Props) {
  return (
    <Layout site={site} viewer={viewer} path="/providers" title="Providers">
      <div class="toolbar">
        <h1>Providers</h1>
      </div>
      {providers.length === 0 ? (
        <div class="empty">
          <h2>No provider yet</h2>
          <p>
            A provider is a developer tool: where its docs start, and where its product answers. Prompts that name it
            begin there, and what all of their runs did with its docs is drawn as one map.
          </p>
        </div>
      ) : (
        <Wide label="Providers">
          <table class="list">
            <Heads words={["Name", "Docs", "Product"]} />
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
          <h2>Add a provider</h2>
          <ProviderForm action={`${base}/providers`} act="Add" fields={typed} wrong={wrong} />
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
      <label for="docsUrl">Where its docs start</label>
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
      <label for="productUrl">Where its product answers</label>
      <input id="productUrl" name="productUrl" type="url" value={fields?.productUrl} maxLength={2000} />
    </div>
    <button type="submit" class="main">
      {act}
    </button>
  </form>
);
