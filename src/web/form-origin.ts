import { AppError, badRequest } from "../errors.ts";
import { readBytes } from "../http/body.ts";

/** CSRF check: throws forbidden unless the form was sent from a page of this server. Other sites send the cookie too, but not this origin. Also throws too_large. The value of a file is its content in base64. */
export async function readForm(request: Request, baseUrl: string, maxBytes?: number): Promise<URLSearchParams> {
  const own = new URL(baseUrl);
  const sent = URL.parse(request.headers.get("origin") ?? "");
  // Allows another name of this server, such as localhost for 127.0.0.1. Browsers send both headers, and pages can forge neither.
  const host = request.headers.get("host") ?? own.host;
  if (sent?.protocol !== own.protocol || ![own.host, host].includes(sent.host))
    throw new AppError(
      "forbidden",
      `this form was not sent from ${own.origin}; open evald there and try again (EVALD_BASE_URL sets the public address of this server)`,
    );
  const type = request.headers.get("content-type") ?? "";
  if (!/^(application\/x-www-form-urlencoded|multipart\/form-data)\b/i.test(type))
    throw badRequest("expected a form (application/x-www-form-urlencoded or multipart/form-data)");
  const bytes = await readBytes(request, maxBytes);
  if (/^application/i.test(type)) return new URLSearchParams(new TextDecoder().decode(bytes));
  const form = new URLSearchParams();
  for (const [name, value] of await readParts(bytes, type))
    if (typeof value === "string") form.append(name, value);
    // Browsers send an empty file without a name for an input in which nothing was selected.
    else if (value.size > 0 || value.name) form.append(name, Buffer.from(await value.bytes()).toString("base64"));
  return form;
}

async function readParts(bytes: Uint8Array<ArrayBuffer>, type: string): Promise<FormData> {
  try {
    return await new Response(bytes, { headers: { "content-type": type } }).formData();
  } catch {
    throw badRequest("the form is not valid multipart/form-data");
  }
}
