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

/** How a form is shown in the description of the API: what a browser sends from a page of the service. */
export const form = (operationId: string, summary: string) => ({
  detail: {
    tags: ["Pages"],
    operationId,
    summary,
    description: "Taken from pages of this service only: the Origin must be its own. Programs use the API.",
    security: [{ bearer: [] }],
    requestBody: {
      required: false,
      content: { "application/x-www-form-urlencoded": { schema: { type: "object" as const } } },
    },
    responses: {
      200: { description: "A page, where the form only asks to be shown one", content: html },
      303: { description: "Done; the address says where to go on" },
      400: { description: "Something in the form is not valid; the page says what", content: html },
      401: { description: "Nobody who is known here", content: html },
      403: { description: "Not sent from a page of this service, or not allowed", content: html },
      404: { description: "There is none, or it is another organisation's", content: html },
    },
  },
});
