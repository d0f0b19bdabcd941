import { AppError, badRequest } from "../errors.ts";
import { readText } from "../http/body.ts";

/** CSRF check: throws forbidden unless the form was sent from a page of this server. Other sites send the cookie too, but not this origin. Also throws too_large. */
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
  if (!type.startsWith("application/x-www-form-urlencoded"))
    throw badRequest("expected a form (application/x-www-form-urlencoded)");
  return new URLSearchParams(await readText(request, maxBytes));
}
