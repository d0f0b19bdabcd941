import { isUploadToken, toUploadToken } from "../auth/links.ts";
import type { Context, OrgId } from "../context.ts";
import { AppError, badRequest } from "../errors.ts";
import { maxPublicBytes, maxRequestBodySize, readBytes, tooLarge } from "../http/body.ts";

const uploadName = "upload";
/** The limit for the text of a form. Files don't count. */
const maxPersonFormBytes = 1024 * 1024;

/** More fields than the largest form has. Processing the fields, for example as inputs of a page, takes far more memory than their text. */
const maxFields = 2000;

/** The query of the URL that a form with files is sent to. It contains a token that says who opened the form. */
export const uploadQuery = (ctx: Context, org: OrgId, personId: string): string =>
  `?${uploadName}=${toUploadToken(ctx, org, personId)}`;

/** Reads the form of a signed-in person. `files`: the names of its fields with files. */
export const receiveForm = (ctx: Context, request: Request, files: readonly string[] = []): Promise<URLSearchParams> =>
  readForm(ctx, request, maxPersonFormBytes, files);

/** Reads the form of somebody who isn't signed in. Files are read only if the form has a token of a person who was signed in when they opened it. */
export function receivePublicForm(
  ctx: Context,
  request: Request,
  files: readonly string[] = [],
): Promise<URLSearchParams> {
  const token = new URL(request.url).searchParams.get(uploadName) ?? "";
  const keepsFiles = files.length > 0 && isUploadToken(ctx, token);
  return keepsFiles ? readForm(ctx, request, maxPersonFormBytes, files) : readForm(ctx, request, maxPublicBytes, []);
}

/**
 * Reads a form. CSRF check: throws forbidden unless the form was sent from a page of this server. Requests from other sites also carry the cookie,
 * but have another origin. Throws too_large if the text of the form has more than `maxTextBytes`. The value of a file is its content in base64.
 */
async function readForm(
  ctx: Context,
  request: Request,
  maxTextBytes: number,
  files: readonly string[],
): Promise<URLSearchParams> {
  checkOrigin(request, ctx.baseUrl());
  const type = request.headers.get("content-type") ?? "";
  if (/^application\/x-www-form-urlencoded\b/i.test(type)) {
    const bytes = await readBytes(request, maxTextBytes);
    checkFieldCount(countOccurrences(bytes, "&") + 1);
    return new URLSearchParams(new TextDecoder().decode(bytes));
  }
  if (!/^multipart\/form-data\b/i.test(type))
    throw badRequest("Expected a form (application/x-www-form-urlencoded or multipart/form-data).");
  // The page that asks to sign in again sends files as base64 text, which is larger.
  const bytes = await readBytes(request, files.length > 0 ? maxRequestBodySize : maxTextBytes);
  const form = new URLSearchParams();
  let textSize = bytes.length;
  for (const [name, value] of await readParts(bytes, type)) {
    if (files.includes(name)) textSize -= typeof value === "string" ? base64Length(value) : value.size;
    if (typeof value === "string") form.append(name, value);
    // If nothing was selected in a file input, browsers send an empty file without a name.
    else if (value.size > 0 || value.name) form.append(name, Buffer.from(await value.bytes()).toString("base64"));
  }
  if (textSize > maxTextBytes) throw tooLarge(maxTextBytes, "form without its files");
  return form;
}

function checkOrigin(request: Request, baseUrl: string): void {
  const ownOrigin = new URL(baseUrl);
  const sentOrigin = URL.parse(request.headers.get("origin") ?? "");
  // Allows another name of this server, such as localhost for 127.0.0.1. Browsers send both headers, and pages can forge neither of them.
  const host = request.headers.get("host") ?? ownOrigin.host;
  if (sentOrigin?.protocol !== ownOrigin.protocol || ![ownOrigin.host, host].includes(sentOrigin.host))
    throw new AppError(
      "forbidden",
      `This form was not sent from ${ownOrigin.origin}. Open evald there and try again (EVALD_BASE_URL sets the public address of this server).`,
    );
}

async function readParts(bytes: Uint8Array<ArrayBuffer>, type: string): Promise<FormData> {
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]*)"|([^\s";]*))/i.exec(type) ?? [];
  const boundary = quoted ?? plain ?? "";
  if (!/^[\w'()+,./:=? -]{1,70}$/.test(boundary)) throw invalidParts();
  // The last boundary only ends the form.
  checkFieldCount(countOccurrences(bytes, `--${boundary}`) - 1);
  try {
    // The parser must use the same boundary that was counted.
    const headers = { "content-type": `multipart/form-data; boundary="${boundary}"` };
    return await new Response(bytes, { headers }).formData();
  } catch {
    throw invalidParts();
  }
}

/** The length of a file that was sent as base64 by the page that asks to sign in again; 0 for other text. */
const base64Length = (text: string): number => (/^[\w+/=]*$/.test(text) ? text.length : 0);

const invalidParts = () => badRequest("The form is not valid multipart/form-data.");

function checkFieldCount(fields: number): void {
  if (fields > maxFields) throw new AppError("too_large", `The form has more than ${maxFields} fields. Send fewer.`);
}

/** How often a text occurs. Counting stops at one more than a form may contain. */
function countOccurrences(bytes: Uint8Array<ArrayBuffer>, text: string): number {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  let count = 0;
  for (
    let index = all.indexOf(text);
    index >= 0 && count <= maxFields + 1;
    index = all.indexOf(text, index + text.length)
  )
    count++;
  return count;
}
