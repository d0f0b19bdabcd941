import { nameOf } from "../../http/examples.ts";
import { ScrollArea } from "../components/figures.tsx";
import { Layout } from "../components/layout.tsx";
import type { Site } from "../site.ts";
import { DocsNav, type DocsProps } from "./docs.tsx";

type Schema = {
  $ref?: string;
  type?: string | string[];
  format?: string;
  description?: string;
  enum?: unknown[];
  const?: unknown;
  items?: Schema;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  default?: unknown;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  maxItems?: number;
  examples?: unknown[];
};
type Content = Record<string, { schema?: Schema }>;
type Operation = {
  operationId: string;
  summary: string;
  description: string;
  tags: string[];
  security?: object[];
  parameters?: (Parameter | { $ref: string })[];
  requestBody?: { content: Content };
  responses: Record<string, Response | { $ref: string }>;
};
type Parameter = { name: string; in: string; required?: boolean; description?: string; schema: Schema };
type Response = { description: string; content?: Content };

/** The parts of an OpenAPI document that the page shows. */
export type OpenApiDocument = {
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: {
    schemas: Record<string, Schema>;
    responses: Record<string, Response>;
    parameters: Record<string, Parameter>;
  };
};

type Endpoint = { method: string; path: string; operation: Operation };

const toEndpoints = ({ paths }: OpenApiDocument): Endpoint[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );

/** All operations and schemas of the REST API, from its OpenAPI description. */
export function ReferencePage({ site, viewer, document }: DocsProps & { document: OpenApiDocument }) {
  const endpoints = toEndpoints(document);
  const groups = document.tags
    .map((tag) => ({ ...tag, operations: endpoints.filter(({ operation }) => operation.tags.includes(tag.name)) }))
    .filter(({ operations }) => operations.length > 0);
  const schemas = Object.entries(document.components.schemas);
  const { responses, parameters } = document.components;
  const findSharedResponse = (reference: string) => responses[nameOf(reference)] as Response;
  const findSharedParameter = (reference: string) => parameters[nameOf(reference)] as Parameter;
  return (
    <Layout
      {...{ site, viewer }}
      path="/docs/api"
      title="API reference"
      description="Every operation and field of the REST API."
      isPublic
      crumbs={[{ name: "Docs", path: "/docs" }, { name: "API reference" }]}
      aside={<DocsNav site={site} viewer={viewer} current="api" />}
    >
      <article class="reference">
        <h1>API reference</h1>
        <p class="lead">
          Every operation and field of the REST API, generated from its{" "}
          <a href={`${site.base}/openapi.json`}>OpenAPI 3.1 description</a>. See{" "}
          <a href={`${site.base}/docs/rest`}>REST API by example</a> for samples to copy.
        </p>
        <p class="only-live">
          <label>
            Filter operations <input type="search" data-filters=".operation" autocomplete="off" />
          </label>
        </p>
        <nav class="contents" aria-label="Operations">
          {groups.map(({ name, operations }) => (
            <section key={name}>
              <h2>{name}</h2>
              <ul>
                {operations.map(({ method, path, operation }) => (
                  <li key={operation.operationId}>
                    <a href={`#${operation.operationId}`}>
                      <Method method={method} /> <span>{path}</span>
                    </a>
                  </li>
                ))}
              </ul>
            </section>
          ))}
        </nav>
        {groups.map(({ name, description, operations }) => (
          <section key={name}>
            <h2 id={name.toLowerCase()}>{name}</h2>
            <p class="muted">{description}</p>
            {operations.map((endpoint) => (
              <OperationPart
                key={endpoint.operation.operationId}
                {...{ site, findSharedResponse, findSharedParameter, ...endpoint }}
              />
            ))}
          </section>
        ))}
        <section>
          <h2 id="schemas">Schemas</h2>
          {schemas.map(([name, schema]) => (
            <details key={name} id={`schema-${name}`} class="schema">
              <summary>{name}</summary>
              <Fields schema={schema} />
              {schema.examples?.[0] !== undefined && <Example value={schema.examples[0]} />}
            </details>
          ))}
        </section>
      </article>
    </Layout>
  );
}

const Method = ({ method }: { method: string }) => <code class={`method ${method.toLowerCase()}`}>{method}</code>;

type PartProps = Endpoint & {
  site: Site;
  findSharedResponse: (reference: string) => Response;
  findSharedParameter: (reference: string) => Parameter;
};

function OperationPart({ site, method, path, operation, findSharedResponse, findSharedParameter }: PartProps) {
  const { operationId, summary, description, requestBody, responses, security } = operation;
  const parameters = (operation.parameters ?? []).map((each) =>
    "$ref" in each ? findSharedParameter(each.$ref) : each,
  );
  const body = Object.values(requestBody?.content ?? {})[0]?.schema;
  return (
    <section id={operationId} class="operation">
      <h3>
        <a href={`#${operationId}`}>{summary}</a>
      </h3>
      <p class="call">
        <Method method={method} /> <code>{site.base + path}</code>
        {security?.length === 0 && <span class="pill">No API key required</span>}
      </p>
      {description !== `${summary}.` && <p>{description}</p>}
      {parameters.length > 0 && (
        <Rows
          caption="Parameters"
          rows={parameters.map(({ name, in: location, required = false, description: text, schema }) => ({
            name,
            required,
            note: location,
            schema: { ...schema, description: text ?? schema.description },
          }))}
        />
      )}
      {body && (
        <>
          <h4>Request body</h4>
          {body.$ref || !body.properties ? (
            <p>
              <Type schema={body} />
            </p>
          ) : (
            <Fields schema={body} />
          )}
        </>
      )}
      <h4>Responses</h4>
      <ul class="responses">
        {Object.entries(responses).map(([status, response]) => {
          const { description: text, content } = "$ref" in response ? findSharedResponse(response.$ref) : response;
          const [mediaType, body] = Object.entries(content ?? {})[0] ?? [];
          // All errors have the same body, so it isn't shown for each of them.
          const schema = status.startsWith("2") && mediaType === "application/json" ? body?.schema : undefined;
          return (
            <li key={status}>
              <code>{status}</code> <span>{text}</span>
              {schema && (
                <span>
                  {" → "}
                  <Type schema={schema} />
                </span>
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

const Fields = ({ schema }: { schema: Schema }) => (
  <>
    {schema.description && <p>{schema.description}</p>}
    {schema.properties ? (
      <Rows
        caption="Fields"
        rows={Object.entries(schema.properties).map(([name, field]) => ({
          name,
          required: schema.required?.includes(name) ?? false,
          note: null,
          schema: field,
        }))}
      />
    ) : (
      <p>
        <Type schema={schema} />
      </p>
    )}
  </>
);

type FieldRow = { name: string; required: boolean; note: string | null; schema: Schema };

const Rows = ({ caption, rows }: { caption: string; rows: FieldRow[] }) => (
  <ScrollArea label={caption}>
    <table class="list fields">
      <caption>{caption}</caption>
      <tbody>
        {rows.map(({ name, required, note, schema }) => (
          <tr key={name}>
            <th scope="row">
              <code>{name}</code>
              {!required && <small> optional</small>}
            </th>
            <td>
              <Type schema={schema} /> {note && <small>in the {note}</small>}
            </td>
            <td>
              {schema.description ?? schema.items?.description}
              <Bounds schema={schema} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </ScrollArea>
);

/** A type. If the type has a named schema, it is a link to that schema. */
function Type({ schema }: { schema: Schema }) {
  if (schema.$ref) {
    const name = nameOf(schema.$ref);
    return <a href={`#schema-${name}`}>{name}</a>;
  }
  if (schema.anyOf)
    return (
      <>
        {schema.anyOf.map((each, i) => (
          <span key={String(i)}>
            {i > 0 && " or "}
            <Type schema={each} />
          </span>
        ))}
      </>
    );
  const types = [schema.type ?? []].flat();
  if (schema.items)
    return (
      <>
        list of <Type schema={schema.items} />
        {types.includes("null") && " or null"}
      </>
    );
  if (schema.const !== undefined) return <code>{JSON.stringify(schema.const)}</code>;
  const text = types.length > 0 ? types.join(" or ") : "any value";
  return <span class="type">{schema.format ? `${text} (${schema.format})` : text}</span>;
}

/** Constraints of a value: allowed values, bounds and default. */
function Bounds({ schema }: { schema: Schema }) {
  const { minimum, maximum, minLength, maxLength, maxItems } = schema;
  const hasBoth = minimum !== undefined && maximum !== undefined;
  const bounds = [
    schema.enum && `one of ${schema.enum.map((value) => JSON.stringify(value)).join(", ")}`,
    hasBoth && `${minimum} to ${maximum}`,
    !hasBoth && minimum !== undefined && `at least ${minimum}`,
    !hasBoth && maximum !== undefined && `at most ${maximum}`,
    maxLength !== undefined && `${minLength ?? 0} to ${maxLength} characters`,
    maxItems !== undefined && `at most ${maxItems}`,
    schema.default !== undefined && `default ${JSON.stringify(schema.default)}`,
  ].filter(Boolean);
  return bounds.length === 0 ? null : <small class="bounds"> {bounds.join("; ")}</small>;
}

const Example = ({ value }: { value: unknown }) => (
  <div class="sample">
    <ScrollArea label="Example">
      <pre>
        <code>{JSON.stringify(value, null, 2)}</code>
      </pre>
    </ScrollArea>
    <button type="button" class="only-live" data-copy="">
      Copy
    </button>
  </div>
);
