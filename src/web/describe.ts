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
          description: "Takes the cookie of a person who is signed in, or an API key as a Bearer credential.",
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

/** A form that a page sends, or a page that only a browser with its cookie asks for: no part of the API. */
export const hidden = { detail: { hide: true }, parse: "none" as const };
