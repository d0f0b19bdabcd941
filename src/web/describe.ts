type More = { types?: string[]; refuses?: boolean; misses?: boolean; needsKey?: boolean };

const html = { "text/html": { schema: { type: "string" as const } } };

/** OpenAPI metadata of a page. `refuses`: can return 400; `misses`: can return 404; `needsKey`: can return 401. */
export const page = (
  operationId: string,
  summary: string,
  { types = ["text/html"], refuses, misses, needsKey }: More = {},
) => ({
  detail: {
    tags: ["Pages"],
    operationId,
    summary,
    ...(needsKey
      ? {
          security: [{ bearer: [] }],
          description: "Requires a signed-in session cookie or an API key as a Bearer token.",
        }
      : { security: [] }),
    responses: {
      200: {
        description: "The page",
        content: Object.fromEntries(types.map((type) => [type, { schema: { type: "string" as const } }])),
      },
      ...(refuses && { 400: { description: "Invalid query parameter", content: html } }),
      ...(needsKey && { 401: { description: "Missing or invalid credentials", content: html } }),
      ...(misses && { 404: { description: "Not found in this organization", content: html } }),
    },
  },
});

/** Leaves a route out of the OpenAPI description: forms, and pages that need a session cookie. */
export const hidden = { detail: { hide: true }, parse: "none" as const };
