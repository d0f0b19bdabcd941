// A server that does nothing else: its latency is that of the machine.
const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => Response.json({ status: "alive" }) });
process.stdout.write(`${server.url.origin}\n`);
