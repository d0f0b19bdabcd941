type Received = { method: string; path: string; headers: Record<string, string>; body: string };
type Answer = (received: Received, n: number) => Response | Promise<Response>;

/** A receiver of webhooks on loopback that keeps what it gets. `answer` gets the number of the request, from 1. End it with `close()`. */
export function startReceiver(answer: Answer = () => new Response(null, { status: 204 })) {
  const received: Received[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const headers = Object.fromEntries(request.headers);
      const one = { method: request.method, path: pathname, headers, body: await request.text() };
      return await answer(one, received.push(one));
    },
  });
  return { url: `${server.url.origin}/hook`, host: server.url.host, received, close: () => void server.stop(true) };
}
