import { resolve, sep } from "node:path";

/** The response for a path of a site: one created for each request, or its parts (default: 200, HTML, empty). */
export type SiteRoute =
  | ((request: Request) => Response | Promise<Response>)
  | { status?: number; type?: string; body?: string | Uint8Array<ArrayBuffer>; headers?: Record<string, string> };

export type Site = {
  /** `http://127.0.0.1:PORT`, without a trailing slash. */
  url: string;
  port: number;
  /** Every request so far, as `GET /path?query`. */
  requests: string[];
  stop(): void;
};

const types: Record<string, string> = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  json: "application/json",
  md: "text/markdown; charset=utf-8",
  txt: "text/plain; charset=utf-8",
  xml: "application/xml",
  yaml: "application/yaml",
};

/** Serves `path` or `path?query` → answer on a loopback port, by default a free one; anything else is a 404. */
export function serveSite(routes: Record<string, SiteRoute>, { port = 0 } = {}): Site {
  return serve((request, url) => {
    const route = routes[url.pathname + url.search] ?? routes[url.pathname];
    if (!route) return notFound();
    if (typeof route === "function") return route(request);
    const type = route.type ?? types[extension(url.pathname)] ?? "text/html; charset=utf-8";
    return new Response(route.body ?? "", {
      status: route.status ?? 200,
      headers: { "content-type": type, ...route.headers },
    });
  }, port);
}

/**
 * Serves the files of a folder: `/a` is `a`, `a/index.html` or `a.html`. With `markdown`, a request that accepts
 * `text/markdown` gets the `.md` file of the same name if there is one, as with content negotiation.
 */
export function serveFolder(folder: string, { markdown = false }: { markdown?: boolean } = {}): Site {
  const root = resolve(folder);
  return serve(async (request, url) => {
    const path = resolve(root, `.${decodeURIComponent(url.pathname)}`);
    if (path !== root && !path.startsWith(root + sep)) return notFound();
    const bare = path.replace(/\.html$/, "");
    const negotiated = markdown && (request.headers.get("accept") ?? "").includes("text/markdown");
    const names = [path, `${path}${sep}index.html`, `${path}.html`];
    if (negotiated) names.unshift(`${bare}.md`, `${path}${sep}index.md`);
    for (const name of names) {
      const file = Bun.file(name);
      if ((await file.exists()) && (await file.stat()).isFile())
        return new Response(await file.bytes(), {
          headers: { "content-type": types[extension(name)] ?? "application/octet-stream" },
        });
    }
    return notFound();
  });
}

function serve(answer: (request: Request, url: URL) => Response | Promise<Response>, wanted = 0): Site {
  const requests: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: wanted,
    fetch(request) {
      const url = new URL(request.url);
      requests.push(`${request.method} ${url.pathname}${url.search}`);
      return answer(request, url);
    },
  });
  const port = server.port ?? 0;
  return { url: `http://127.0.0.1:${port}`, port, requests, stop: () => void server.stop(true) };
}

const notFound = () => new Response("Not found", { status: 404, headers: { "content-type": "text/plain" } });

const extension = (path: string) => /\.([a-z0-9]+)$/i.exec(path)?.[1]?.toLowerCase() ?? "";
