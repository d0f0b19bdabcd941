import { type Provider, ProviderInput } from "../../providers/schema.ts";
import { List, toSorting } from "../components/figures.tsx";
import { Notices, Submit } from "../components/form-parts.tsx";
import { ExternalLink, Layout } from "../components/layout.tsx";
import { SchemaField, SchemaForm } from "../components/schema-form.tsx";
import { toFields } from "../form-values.ts";
import { may, type PageProps } from "../viewer.ts";
import type { FormResult } from "./settings.tsx";

type Props = PageProps & {
  providers: Provider[];
  sort?: string;
  /** The state of the form, if it was rejected. */
  rejected?: FormResult;
};

/** Providers of the organization. */
export function ProvidersPage({ site, site: { base }, viewer, providers, sort, rejected }: Props) {
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
        <List
          label="Providers"
          isStacked
          labels={[
            { label: "Name", sort: "name" },
            { label: "Docs", sort: "docs" },
            { label: "Product", sort: "product" },
          ]}
          sorting={toSorting(`${base}/providers`, { sort }, "-created")}
        >
          {providers.map(({ id, name, docsUrl, productUrl }) => (
            <tr key={id}>
              <th scope="row">
                <a href={`${base}/providers/${id}`}>{name}</a>
              </th>
              <td data-label="Docs">{docsUrl && <ExternalLink url={docsUrl} />}</td>
              <td data-label="Product">{productUrl && <ExternalLink url={productUrl} />}</td>
            </tr>
          ))}
        </List>
      )}
      {may(viewer, "providers") && (
        <section>
          <h2>New provider</h2>
          <ProviderForm action={`${base}/providers`} buttonText="Add provider" {...rejected} />
        </section>
      )}
    </Layout>
  );
}

type FormProps = FormResult & { action: string; buttonText: string; provider?: Provider };

/** The form to add or change a provider. */
export const ProviderForm = ({ action, buttonText, provider, typedValues, errorMessage, formError }: FormProps) => (
  <SchemaForm
    {...{ schema: ProviderInput, values: typedValues ?? toFields(ProviderInput, provider ?? {}), formError, action }}
    class="narrow"
  >
    <Notices errorMessage={errorMessage} />
    <SchemaField name="name" label="Name" required />
    <SchemaField name="docsUrl" label="Docs URL" placeholder="https://docs.acme.example/" />
    <SchemaField name="productUrl" label="Product or API base URL" />
    <Submit>{buttonText}</Submit>
  </SchemaForm>
);
