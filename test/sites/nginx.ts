import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SiteHost } from "../../src/agents/site/host-rules.ts";

/**
 * What each host does with a path that is no file, by what exists for it: `page` (PATH.html), `index` (PATH/index.html), and `slash` if the path
 * ends with one. A number redirects with or without the slash; `page` and `index` serve that file.
 */
const withoutRedirects = { slashIndex: "index", slashPageIndex: "index", page: "page", pageIndex: "page" };
const rules: Record<SiteHost, Record<string, string>> = {
  plain: { ...withoutRedirects, index: "301 /", slashPage: "301" },
  github: { ...withoutRedirects, index: "301 /" },
  netlify: { ...withoutRedirects, index: "301 /", slashPage: "301" },
  vercel: { slashIndex: "index", index: "index", slashPageIndex: "index" },
  cloudflare: { ...withoutRedirects, index: "308 /", slashPage: "308" },
};

/** Where a host redirects the names of files. */
const fileRules: Partial<Record<SiteHost, string>> = {
  cloudflare: `
    if ($uri ~ ^(?<folder>.*/)index\\.html$) { return 308 $folder; }
    if ($uri ~ ^(?<name>.*)\\.html$) { return 308 $name; }`,
};

function toRule(state: string, action: string): string {
  const [status = "", slash = ""] = action.split(" ");
  const words = state.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const body =
    action === "page"
      ? "rewrite ^ $bare.html break;"
      : action === "index"
        ? "rewrite ^ $bare/index.html break;"
        : `return ${status} $bare${slash};`;
  return `    if ($state = "-${words}") { ${body} }`;
}

/** The paths of a site whose 404.html is missing. */
const missing = (host: SiteHost, root: string, base: string): string =>
  existsSync(join(root, base, "404.html"))
    ? `error_page 404 ${base}404.html;`
    : host === "cloudflare"
      ? "error_page 404 =200 @start;"
      : "";

/** The configuration of nginx that answers like a host. */
const toConfiguration = (folder: string, root: string, host: SiteHost, base: string, port: number): string => `
daemon off; master_process off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 256; }
http {
  access_log off; absolute_redirect off; etag off; if_modified_since off;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi; uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
  include /etc/nginx/mime.types; types { text/markdown md mdx; text/javascript mjs; application/yaml yaml yml; }
  default_type application/octet-stream; charset utf-8; charset_types text/html text/plain text/markdown text/javascript;
  map $uri $bare { ~^(?<path>.*?)/*$ $path; }
  server {
    listen 127.0.0.1:${port}; root ${root};
    location @start { rewrite ^ ${base}index.html break; }
    location = ${base.slice(0, -1)} { return 301 ${base}; }
    location = ${base}404.html { internal; }
    location / { return 404; }
    location ${base} {
    ${missing(host, root, base)}
    set $state "";
    if ($uri ~ /$) { set $state "-slash"; }
    if (-f $document_root$bare.html) { set $state "\${state}-page"; }
    if (-f $document_root$bare/index.html) { set $state "\${state}-index"; }
    if (-f $request_filename) { set $state "file"; }${fileRules[host] ?? ""}
${Object.entries(rules[host])
  .map(([state, action]) => toRule(state, action))
  .join("\n")}
    if ($state ~ ^(-slash|-slash-page|-page|-page-index)?$) { return 404; }
    }
  }
}
`;

/** Serves a copy of a folder under a path with nginx, as a host would. Throws if nginx doesn't start within 5 seconds. */
export async function serveByNginx(site: string, host: SiteHost, base: string) {
  const folder = mkdtempSync(join(tmpdir(), "evald-nginx-"));
  const root = join(folder, "root");
  mkdirSync(root);
  cpSync(site, join(root, base), { recursive: true });
  const port = await findPort();
  writeFileSync(join(folder, "nginx.conf"), toConfiguration(folder, root, host, base, port));
  const server = Bun.spawn(["nginx", "-p", folder, "-c", join(folder, "nginx.conf"), "-e", join(folder, "error.log")], {
    stderr: "pipe",
  });
  const url = `http://127.0.0.1:${port}`;
  const startedAt = performance.now();
  while (!(await fetch(url).then(Boolean, () => false))) {
    if (server.exitCode !== null || performance.now() - startedAt > 5000)
      throw new Error(`nginx did not start: ${await new Response(server.stderr).text()}`);
    await Bun.sleep(20);
  }
  return {
    url,
    async stop() {
      server.kill();
      await server.exited;
      rmSync(folder, { recursive: true });
    },
  };
}

/** A port that was free a moment ago. */
async function findPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("No port is free.");
  return address.port;
}
