import { version } from "../package.json" with { type: "json" };

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Makes the document that the plugin collects valid OpenAPI 3.1, and adds what no route can know. */
export function toOpenApi({ paths, components }: { paths: object; components?: object }, baseUrl: string): object {
  return {
    openapi: "3.1.0",
    info: {
      title: "evald",
      version: "1.0.0",
      description: `How well AI agents get along with a developer tool: prompts, runs, reports. Served by evald ${version}.`,
      license: { name: "MIT", identifier: "MIT" },
      contact: { name: "The operator of this service", url: baseUrl },
    },
    servers: [{ url: baseUrl }],
    tags: [
      { name: "Prompts", description: "Tasks with an end goal" },
      { name: "Runs", description: "Single executions of a prompt" },
      { name: "Reports", description: "What a run found" },
      { name: "System", description: "The service itself" },
      { name: "Pages", description: "For people" },
    ],
    paths: tidy(paths as Json),
    components: {
      ...(tidy((components ?? {}) as Json) as object),
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "An API key: evals_ and 36 characters" },
      },
    },
  };
}

function tidy(value: Json): Json {
  if (Array.isArray(value)) return value.map(tidy);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== "$id")
      .map(([key, item]) => [key, tidy(item)]),
  );
}
