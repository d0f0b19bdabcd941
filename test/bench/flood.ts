// Sends requests over many connections, each the next one when its response is whole, until it is killed. A process of its own, so that it
// shares no thread with what is measured. Prints a count of the responses by status when its standard input ends.

/** What a flood sends. `{n}` in the path and the body is a number that is never repeated, `{address}` in a header an IP address of that kind. */
export type Flood = {
  url: string;
  connections: number;
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: string;
  /** Sent as often as `body` asks for by `{piece}`; keeps the arguments of the process short. */
  repeat?: [piece: string, times: number];
};

if (import.meta.main) {
  const flood: Flood = JSON.parse(process.argv[2] as string);
  const { url, connections, method } = flood;
  const headersOf = (n: number) => {
    const address = `10.${[16, 8, 0].map((bits) => (n >> bits) & 255).join(".")}`;
    return Object.fromEntries(
      Object.entries(flood.headers).map(([name, value]) => [name, value.replace("{address}", address)]),
    );
  };
  const [piece, times] = flood.repeat ?? ["", 0];
  const body = flood.body?.replace("{piece}", () => piece.repeat(times));
  const isNumbered = body?.includes("{n}");
  const counts: Record<string, number> = {};
  let sent = Date.now() * 1000;
  const one = async () => {
    for (;;) {
      const n = String(sent++);
      try {
        const response = await fetch(url + flood.path.replace("{n}", n), {
          method,
          headers: headersOf(sent),
          redirect: "manual",
          ...(body !== undefined && { body: isNumbered ? body.replace("{n}", n) : body }),
        });
        await response.arrayBuffer();
        counts[response.status] = (counts[response.status] ?? 0) + 1;
        if (response.status === 503) await Bun.sleep(50);
      } catch {
        counts.failed = (counts.failed ?? 0) + 1;
        await Bun.sleep(10);
      }
    }
  };
  for (let i = 0; i < connections; i++) void one();
  await Bun.stdin.text();
  process.stdout.write(JSON.stringify(counts));
  process.exit(0);
}
