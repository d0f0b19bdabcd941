import { header } from "../http/openapi.ts";
import { ApiError } from "../http/operation.ts";

type More = {
  types?: string[];
  refuses?: boolean;
  misses?: boolean;
  needsKey?: boolean;
  isTagged?: boolean;
  isUnlisted?: boolean;
};

const html = { "text/html": { schema: { type: "string" as const } } };

/** Errors are pages for a request that accepts HTML, and JSON for any other. */
const failure = { ...html, "application/json": { schema: ApiError } };

const byKey: Record<string, string[]>[] = [{ bearer: [] }];
const bySession: Record<string, string[]>[] = [{ session: [] }];

const seeOther = (description: string, setsCookie = false) => ({
  description,
  headers: {
    Location: { description: "URL of the other page", schema: { type: "string" as const } },
    ...(setsCookie && { "Set-Cookie": header("SetCookie") }),
  },
});

/**
 * OpenAPI metadata of a page. `refuses`: can return 400; `misses`: can return 404; `needsKey`: can return 401; `isTagged`: has an ETag;
 * `isUnlisted`: search engines must not list it.
 */
export const page = (
  operationId: string,
  summary: string,
  { types = ["text/html"], refuses, misses, needsKey, isTagged, isUnlisted }: More = {},
) => ({
  detail: {
    tags: ["Pages"],
    operationId,
    summary,
    ...(needsKey
      ? {
          security: [...byKey, ...bySession],
          description: "Requires a signed-in session cookie or an API key as a Bearer token.",
        }
      : { security: [] }),
    responses: {
      200: {
        description: "The page",
        headers: {
          ...(isTagged && { ETag: header("ETag") }),
          ...(needsKey && { "Set-Cookie": header("SetCookie") }),
          ...(isUnlisted && { "X-Robots-Tag": header("Robots") }),
        },
        content: Object.fromEntries(types.map((type) => [type, { schema: { type: "string" as const } }])),
      },
      ...(isTagged && { 304: { description: "Response for status 304", headers: { ETag: header("ETag") } } }),
      ...(refuses && { 400: { description: "Invalid query parameter", content: failure } }),
      ...(needsKey && {
        303: seeOther("Redirects browsers to the sign-in page, and forms to the URL of their result", true),
        401: { description: "Missing or invalid credentials", content: failure },
        403: { description: "Not allowed for this person or key", content: failure },
      }),
      ...(misses && { 404: { description: "Not found in this organization", content: failure } }),
    },
  },
});

/** `open`: needs no sign-in; `upload`: a form that may contain files. */
type Kind = "form" | "upload" | "page" | "stream" | "open" | "openForm" | "redirect";

/** OpenAPI metadata of a form, or of a page or stream that belongs to the session of a browser. Its body is read by the route. */
export const action = (operationId: string, summary: string, kind: Kind = "form") => {
  const isForm = kind === "form" || kind === "upload" || kind === "openForm";
  const isOpen = kind === "open" || kind === "openForm" || kind === "redirect";
  const shown = {
    description: kind === "redirect" ? "The page that the redirect leads to" : "The page",
    content: html,
  };
  const stream = {
    description: "Stream of server-sent events",
    headers: { "X-Accel-Buffering": header("Unbuffered") },
    content: { "text/event-stream": html["text/html"] },
  };
  const failed = (description: string) => ({ description, content: failure });
  return {
    parse: "none" as const,
    detail: {
      tags: ["Pages"],
      operationId,
      summary,
      security: isOpen ? [] : kind === "stream" ? [...bySession, ...byKey] : bySession,
      ...(!isOpen && { description: "Requires a signed-in session cookie." }),
      ...(isForm && {
        requestBody: {
          required: true,
          content: {
            "application/x-www-form-urlencoded": {
              schema: { type: "object" as const, additionalProperties: { type: "string" as const } },
            },
            ...(kind === "upload" && {
              "multipart/form-data": {
                schema: { type: "object" as const, additionalProperties: { type: "string" as const } },
              },
            }),
          },
        },
      }),
      responses: {
        200: kind === "stream" ? stream : shown,
        303: seeOther("Another page: the result, or the sign-in page", isForm),
        400: failed("The request is invalid; the page says why"),
        ...((isForm || !isOpen) && { 401: failed("Missing or invalid credentials") }),
        403: failed("Not allowed for this person, or the form was sent by another site"),
        404: failed("Not found in this organization"),
        ...(isForm && { 409: failed("Conflicts with the current state"), 413: failed("The form is too large") }),
        429: failed("Too many requests"),
      },
    },
  };
};
