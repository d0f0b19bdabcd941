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

/** A fetch that goes to a unix socket, whatever the host of the address. `onAnswer` sees each answer first. */
export const viaSocket = (unix: string, onAnswer: (response: Response) => void = () => {}): typeof fetch => {
  const send = async (url: string | URL | Request, init?: RequestInit) => {
    const response = await fetch(url, { ...init, unix, ...{ timeout: false } });
    onAnswer(response);
    return response;
  };
  return Object.assign(send, { preconnect: fetch.preconnect });
};
