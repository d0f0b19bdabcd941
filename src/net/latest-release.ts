import { readTextStart } from "./text-start.ts";
import { userAgent } from "./user-agent.ts";

const timeoutMs = 10_000;
const maxChars = 64 * 1024;

/**
 * The version of the newest release. It is read from the `latest.json` of a release, at a URL that the operator set. Throws if the response is
 * another document. The request tells nothing about this service except its version.
 */
export async function fetchLatestVersion(url: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(url, {
    headers: { accept: "application/json", "user-agent": userAgent },
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
  });
  if (!response.ok) throw new Error(`the server returned ${response.status}`);
  // Reading stops once the text is longer than this, so a longer document is refused rather than cut.
  const text = await readTextStart(response, maxChars);
  if (text.length > maxChars) throw new Error(`the answer is longer than ${maxChars} characters`);
  const { version } = JSON.parse(text);
  if (typeof version !== "string" || !/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(version))
    throw new Error("the answer has no version");
  return version;
}
