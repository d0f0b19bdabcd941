type More = { types?: string[]; refuses?: boolean; misses?: boolean; needsKey?: boolean };

const html = { "text/html": { schema: { type: "string" as const } } };

/** How a page is shown in the description of the API. */
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
          description: "Takes an API key as a Bearer credential, or as the password of HTTP Basic with any user name.",
        }
      : { security: [] }),
    responses: {
      200: {
        description: "The page",
        content: Object.fromEntries(types.map((type) => [type, { schema: { type: "string" as const } }])),
      },
      ...(refuses && { 400: { description: "Something in the query is not valid", content: html } }),
      ...(needsKey && { 401: { description: "No valid API key", content: html } }),
      ...(misses && { 404: { description: "There is none, or it is another organisation's", content: html } }),
    },
  },
});

/** How the target of a form is shown in the description of the API. */
export const form = (operationId: string, summary: string) => ({
  parse: "none" as const,
  detail: {
    tags: ["Pages"],
    operationId,
    summary,
    security: [{ bearer: [] }],
    description:
      "Takes the form of a page of this service, from its own origin. Programs use the operations under /api/.",
    responses: {
      200: { description: "The page with what was made", content: html },
      303: { description: "Done; the page to go on with stands in Location" },
      ...Object.fromEntries(
        Object.entries({
          400: "Something in the form is not valid",
          401: "Nobody is signed in",
          403: "It comes from elsewhere, or takes another role",
          404: "There is none, or it is another organisation's",
        }).map(([status, description]) => [status, { description, content: html }]),
      ),
    },
  },
});
