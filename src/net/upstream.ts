/**
 * Sends a request to an address that the operator configured, and to nothing else: redirects are not followed, so that a key goes only where
 * it belongs. No bound on time: the caller's signal ends it.
 */
export function openUpstream(
  url: string,
  request: { headers: Record<string, string>; body: string; signal: AbortSignal },
) {
  const { headers, body, signal } = request;
  return fetch(url, {
    method: "POST",
    // Plain bytes: they are read while they pass.
    headers: { ...headers, "content-type": "application/json", "accept-encoding": "identity" },
    body,
    signal,
    redirect: "manual",
    ...{ timeout: false },
  });
}
