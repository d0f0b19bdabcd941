import { createGateway } from "../../src/agents/gateway/gateway.ts";

/** The gateway of a service without runs, for workers whose agents have no model. */
export function serveGateway() {
  const gateway = createGateway({ now: Date.now });
  const serve = (port: number) => Bun.serve({ hostname: "127.0.0.1", port, fetch: gateway.answer });
  let server = serve(0);
  const { port } = server;
  return {
    url: `http://127.0.0.1:${port}/gateway`,
    stop: () => server.stop(true),
    /** Serves it again on the same port. */
    restart(): void {
      server = serve(port as number);
    },
  };
}
