import { join, resolve, sep } from "node:path";
import { serveFolder } from "./site.ts";

const bunDocs = join(import.meta.dir, "..", "..", "node_modules", "bun-types", "docs");

/** Markdown served under clean URLs: `/docs/runtime/sqlite` is `runtime/sqlite.mdx`, `/docs` is `index.mdx`. */
function serveMarkdown(folder: string) {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const path = resolve(folder, `.${decodeURIComponent(pathname).replace(/^\/docs(?=\/|$)/, "")}`);
      if (path !== folder && !path.startsWith(folder + sep)) return new Response("not found", { status: 404 });
      for (const name of [path, `${path}.mdx`, `${path}${sep}index.mdx`]) {
        const file = Bun.file(name);
        if ((await file.exists()) && (await file.stat()).isFile())
          return new Response(await file.bytes(), { headers: { "content-type": "text/markdown; charset=utf-8" } });
      }
      return new Response("not found", { status: 404 });
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, stop: () => void server.stop(true) };
}

/** Real documentation on loopback: two Debian packages of HTML and the Markdown of an npm package. */
export const realDocs = {
  sqlite: {
    serve: () => serveFolder("/usr/share/doc/sqlite3"),
    start: "/",
    goal: "Create a full-text search index with FTS5 and run a query ranked by bm25",
  },
  git: {
    serve: () => serveFolder("/usr/share/doc/git-doc"),
    start: "/",
    goal: "Undo the last commit but keep its changes staged",
  },
  bun: {
    serve: () => serveMarkdown(bunDocs),
    start: "/docs/runtime/bun-apis",
    goal: "Serve HTTP with Bun.serve and read a row from SQLite",
  },
};
