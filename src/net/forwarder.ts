const kept = (headers: Headers): Headers => {
  const own = new Headers(headers);
  // Uncompressed, so that the answer can be passed on as it comes.
  own.set("accept-encoding", "identity");
  for (const name of ["host", "connection", "content-length", "transfer-encoding"]) own.delete(name);
  return own;
};

/** Passes requests to a unix socket on to a URL of the operator, and streams the answers back. */
export function forwardSocket(socketPath: string, baseUrl: string) {
  return Bun.serve({
    unix: socketPath,
    // Typed for TCP only, but unix sockets also close idle connections without it.
    ...({ idleTimeout: 0 } as object),
    maxRequestBodySize: 32 * 1024 * 1024,
    async fetch(request): Promise<Response> {
      const { pathname, search } = new URL(request.url);
      const { method, signal } = request;
      const body = method === "GET" ? undefined : await request.arrayBuffer();
      try {
        const init = { method, headers: kept(request.headers), body, signal, redirect: "manual" as const };
        const answer = await fetch(baseUrl + pathname + search, { ...init, ...{ timeout: false } });
        const headers = new Headers(answer.headers);
        for (const name of ["connection", "content-length", "transfer-encoding"]) headers.delete(name);
        return new Response(answer.body, { status: answer.status, headers });
      } catch (error) {
        const message = `the gateway did not respond: ${error instanceof Error ? error.message : String(error)}`;
        return Response.json({ type: "error", error: { type: "gateway", message } }, { status: 502 });
      }
    },
  });
}

/** The body at a path of the gateway, with a run's token. Throws for any status other than 200. */
export async function fetchFile(baseUrl: string, path: string, token: string): Promise<Uint8Array> {
  const answer = await fetch(baseUrl + path, { headers: { authorization: `Bearer ${token}` }, redirect: "manual" });
  if (answer.status !== 200) throw new Error(`the service answered ${answer.status} to ${path}`);
  return await answer.bytes();
}
