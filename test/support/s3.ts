import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import S3rver from "s3rver";

/** An S3 server on loopback with one bucket, which keeps its objects in a folder. */
export async function startStore(bucket = "backups") {
  const folder = mkdtempSync(join(tmpdir(), "evald-test-store-"));
  const server = new S3rver({
    ...{ address: "127.0.0.1", port: 0, silent: true, directory: folder },
    configureBuckets: [{ name: bucket, configs: [] }],
  });
  const { port } = await server.run();
  const endpoint = `http://127.0.0.1:${port}`;
  return {
    endpoint,
    /** The settings with which a service keeps its backups there, apart from others, and the file of a backup. */
    newPlace() {
      const prefix = crypto.randomUUID();
      return {
        env: { EVALD_BACKUP_TO: `s3://${bucket}/${prefix}`, ...credentials, AWS_ENDPOINT_URL: endpoint },
        fileOf: (name: string) => join(folder, bucket, prefix, `${name}._S3rver_object`),
      };
    },
    close: () => server.close(),
  };
}

const credentials = { AWS_ACCESS_KEY_ID: "S3RVER", AWS_SECRET_ACCESS_KEY: "S3RVER" };

/** A proxy in front of a server, through which the bodies of answers pass a function. */
export function startProxy(endpoint: string, change: (body: Uint8Array, request: Request) => Uint8Array) {
  const { host } = new URL(endpoint);
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    maxRequestBodySize: 1024 ** 3,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const body = request.body === null ? undefined : await request.arrayBuffer();
      // The host is a part of what is signed.
      const headers = new Headers(request.headers);
      const answer = await fetch(`${endpoint}${pathname}${search}`, { method: request.method, headers, body });
      const bytes = change(new Uint8Array(await answer.arrayBuffer()), request);
      return new Response(bytes.slice(), { status: answer.status, headers: answer.headers });
    },
  });
  return { endpoint: `http://127.0.0.1:${server.port}`, host, close: () => server.stop(true) };
}
