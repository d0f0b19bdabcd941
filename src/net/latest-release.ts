import { userAgent } from "./user-agent.ts";

const timeoutMs = 10_000;
const maxBytes = 64 * 1024;

/**
 * The version of the newest release, from the `latest.json` of a release, at a URL that the operator set. Throws if the answer is another
 * document. The request carries nothing about this service but its version.
 */
export async function fetchLatestVersion(url: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(url, {
    headers: { accept: "application/json", "user-agent": userAgent },
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
  });
  if (!response.ok) throw new Error(`the server returned ${response.status}`);
  const bytes = new Uint8Array(maxBytes);
  let size = 0;
  for await (const part of response.body ?? []) {
    if (size + part.length > maxBytes) throw new Error(`the answer is larger than ${maxBytes} bytes`);
    bytes.set(part, size);
    size += part.length;
  }
  const { version } = JSON.parse(new TextDecoder().decode(bytes.subarray(0, size)));
  if (typeof version !== "string" || !/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(version))
    throw new Error("the answer has no version");
  return version;
}
