/**
 * Sends a request to a URL that the operator configured. Redirects are not followed, so the key goes nowhere else.
 * It has no timeout: the caller's signal ends it.
 */
export function openUpstream(
  url: string,
  request: { headers: Record<string, string>; body: string; signal: AbortSignal },
) {
  const { headers, body, signal } = request;
  return fetch(url, {
    method: "POST",
    // Uncompressed, so that the stream can be parsed as it passes.
    headers: { ...headers, "content-type": "application/json", "accept-encoding": "identity" },
    body,
    signal,
    redirect: "manual",
    ...{ timeout: false },
  });
}

/** A fetch over a unix socket, whatever the host of the URL. `onAnswer` sees each response first. */
export const viaSocket = (unix: string, onAnswer: (response: Response) => void): typeof fetch => {
  const send = async (url: string | URL | Request, init?: RequestInit) => {
    const response = await fetch(url, { ...init, unix, ...{ timeout: false } });
    onAnswer(response);
    return response;
  };
  return Object.assign(send, { preconnect: fetch.preconnect });
};
