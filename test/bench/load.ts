/** What a load of requests brought: requests a second and latencies in milliseconds. */
export type Load = { rate: number; p50: number; p99: number };

type Shot = { method: string; path: string; headers: Record<string, string>; body?: string };

/**
 * Sends requests over `connections` kept-alive sockets for `seconds`, each socket the next one when its answer is whole. Written on bare
 * sockets, so that the sender costs little beside the servers that it compares. Throws on any answer that is not 2xx.
 */
export async function load(
  url: string,
  shot: (i: number) => Shot,
  { connections, seconds }: { connections: number; seconds: number },
): Promise<Load> {
  const { hostname, port, host } = new URL(url);
  const until = performance.now() + seconds * 1000;
  const latencies: number[] = [];
  let sent = 0;
  const next = (): Buffer => {
    const { method, path, headers, body = "" } = shot(sent++);
    const lines = Object.entries({ host, ...headers, "content-length": String(Buffer.byteLength(body)) }).map(
      ([k, v]) => `${k}: ${v}\r\n`,
    );
    return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body}`);
  };
  const one = () =>
    new Promise<void>((resolve, reject) => {
      let begun = 0;
      let head = "";
      let left = -1;
      Bun.connect({
        hostname,
        port: Number(port),
        socket: {
          open(socket) {
            begun = performance.now();
            socket.write(next());
          },
          data(socket, bytes) {
            let rest = bytes.length;
            if (left < 0) {
              head += bytes.toString("latin1");
              const end = head.indexOf("\r\n\r\n");
              if (end < 0) return;
              if (!/^HTTP\/1\.1 2/.test(head)) return reject(new Error(head.slice(0, 800)));
              const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? Number.NaN);
              if (Number.isNaN(length)) return reject(new Error("an answer without its length"));
              left = length;
              rest = head.length - end - 4;
              head = "";
            }
            left -= rest;
            if (left > 0) return;
            left = -1;
            const now = performance.now();
            latencies.push(now - begun);
            if (now >= until) {
              socket.end();
              return resolve();
            }
            begun = now;
            socket.write(next());
          },
          error: (_, error) => reject(error),
          close: () => resolve(),
          connectError: (_, error) => reject(error),
        },
      });
    });
  const start = performance.now();
  await Promise.all(Array.from({ length: connections }, one));
  const took = performance.now() - start;
  latencies.sort((a, b) => a - b);
  const at = (share: number) =>
    latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? Number.NaN;
  return { rate: (latencies.length / took) * 1000, p50: at(0.5), p99: at(0.99) };
}

export const percentile = (numbers: number[], share: number): number =>
  [...numbers].sort((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * share))] ?? Number.NaN;

export const median = (numbers: number[]): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;

/** What the measurements of sessions get. */
export type SessionBench = {
  start: (
    command: string[],
    env: Record<string, string>,
  ) => Promise<{ url: string; pid: number; stop: () => Promise<void> }>;
  row: (what: string, ours: string, floor: string, ratio: string, aim: string) => void;
  folder: () => string;
  env: (dataDir: string) => Record<string, string>;
  executable: string;
};
