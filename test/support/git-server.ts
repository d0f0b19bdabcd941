/** Serves the bare repositories below a folder over Git's smart HTTP protocol (git-http-backend(1)), read-only, on loopback. */
export function serveGit(root: string) {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const backend = Bun.spawn(["git", "http-backend"], {
        env: {
          PATH: process.env.PATH ?? "",
          GIT_PROJECT_ROOT: root,
          GIT_HTTP_EXPORT_ALL: "1",
          REQUEST_METHOD: request.method,
          PATH_INFO: pathname,
          QUERY_STRING: search.slice(1),
          CONTENT_TYPE: request.headers.get("content-type") ?? "",
          HTTP_CONTENT_ENCODING: request.headers.get("content-encoding") ?? "",
          GIT_PROTOCOL: request.headers.get("git-protocol") ?? "",
        },
        stdin: Buffer.from(await request.arrayBuffer()),
        stderr: "ignore",
      });
      const output = Buffer.from(await new Response(backend.stdout).arrayBuffer());
      const end = output.indexOf("\r\n\r\n");
      const headers = new Headers(
        output
          .subarray(0, end)
          .toString()
          .split("\r\n")
          .map((line): [string, string] => [line.split(": ")[0] ?? "", line.slice(line.indexOf(": ") + 2)]),
      );
      const status = Number(headers.get("status")?.slice(0, 3) ?? 200);
      headers.delete("status");
      return new Response(output.subarray(end + 4), { status, headers });
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) };
}
