import { existsSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join, resolve, sep } from "node:path";

/** Real documentation: from Debian packages that test/support/setup.sh installs, and from npm packages of bun.lock. */
const modules = join(import.meta.dir, "..", "..", "node_modules");
const debian = (name: string, folder = "html") => join("/usr/share/doc", name, folder);

/** Where fetch-corpora.ts unpacks packages that nothing else needs: a folder each. */
export const fetchedFolder = join(tmpdir(), "evald-corpora");
const fetched = (name: string, folder: string) => join(fetchedFolder, name, folder);
const fetchedDebian = (name: string, folder: string) => fetched(name, join("usr/share/doc", folder));
const fetchedSphinx = (name: string) => fetchedDebian(name, join(name, "html"));

type Corpus = {
  folder: string;
  /** Path of the start page. */
  start: string;
  /** Prefix of every path that isn't part of the folder. */
  prefix?: string;
};

export const corpora = {
  git: { folder: debian("git-doc", ""), start: "/" },
  sqlite: { folder: debian("sqlite3", ""), start: "/" },
  flask: { folder: debian("python-flask-doc"), start: "/" },
  click: { folder: debian("python-click-doc"), start: "/" },
  jinja2: { folder: debian("python-jinja2-doc"), start: "/" },
  requests: { folder: debian("python-requests-doc"), start: "/" },
  peewee: { folder: debian("python-peewee-doc"), start: "/" },
  bottle: { folder: debian("python-bottle-doc"), start: "/" },
  attrs: { folder: debian("python-attr-doc"), start: "/" },
  bun: { folder: join(modules, "bun-types", "docs"), start: "/docs", prefix: "/docs" },
  pino: { folder: join(modules, "pino"), start: "/README.md" },
  undici: { folder: join(modules, "undici"), start: "/README.md" },
  borg: { folder: fetchedDebian("borgbackup-doc", "borgbackup/html"), start: "/" },
  mkdocs: { folder: fetchedDebian("mkdocs-doc", "mkdocs/html"), start: "/" },
  celery: { folder: fetchedSphinx("python-celery-doc"), start: "/" },
  scrapy: { folder: fetchedSphinx("python-scrapy-doc"), start: "/" },
  apache: { folder: fetchedDebian("apache2-doc", "apache2-doc/manual"), start: "/en/" },
  lang3: { folder: fetchedDebian("libcommons-lang3-java-doc", "libcommons-lang3-java/api"), start: "/" },
  pymongo: { folder: fetchedSphinx("python-pymongo-doc"), start: "/" },
  rsyslog: { folder: fetchedDebian("rsyslog-doc", "rsyslog-doc/html"), start: "/" },
  pytest: { folder: fetchedSphinx("python-pytest-doc"), start: "/" },
  aiohttp: { folder: fetchedSphinx("python-aiohttp-doc"), start: "/" },
  knot: { folder: fetchedDebian("knot-doc", "knot-doc"), start: "/" },
  postfix: { folder: fetchedDebian("postfix-doc", "postfix/html"), start: "/" },
  nodejs: { folder: fetchedDebian("nodejs-doc", "nodejs/api"), start: "/" },
  twig: { folder: fetchedDebian("php-twig-doc", "php-twig/manual"), start: "/" },
  tornado: { folder: fetchedSphinx("python-tornado-doc"), start: "/" },
  fastify: { folder: fetched("fastify", "package"), start: "/README.md" },
  postgresql: { folder: fetchedDebian("postgresql-doc-15", "postgresql-doc-15/html"), start: "/" },
  django: { folder: fetchedSphinx("python-django-doc"), start: "/" },
  slurm: { folder: fetchedDebian("slurm-wlm-doc", "slurm-wlm/html"), start: "/slurm.html" },
  ant: { folder: fetchedDebian("ant-doc", "ant/manual"), start: "/" },
  icinga2: { folder: fetchedDebian("icinga2-doc", "icinga2/markdown"), start: "/01-about.md" },
  docker: { folder: fetchedDebian("docker-doc", "docker-doc"), start: "/reference/commandline/index.md" },
  privoxy: { folder: fetchedDebian("privoxy", "privoxy"), start: "/" },
  lemonldap: { folder: fetchedDebian("lemonldap-ng-doc", "lemonldap-ng"), start: "/" },
  octave: { folder: fetchedDebian("octave-doc", "octave/octave.html"), start: "/" },
  rust: { folder: fetchedDebian("rust-doc", "rust-doc/html"), start: "/" },
  erlang: { folder: fetchedDebian("erlang-doc", "erlang-doc"), start: "/doc/" },
  eigen: { folder: fetchedDebian("libeigen3-doc", "libeigen3-dev/html"), start: "/" },
  libsoup: { folder: fetchedDebian("libsoup-3.0-doc", "libsoup-3.0"), start: "/" },
  racket: { folder: fetchedDebian("racket-doc", "racket"), start: "/" },
  stylelint: { folder: fetched("stylelint", "package"), start: "/README.md" },
  drf: { folder: fetchedDebian("python-djangorestframework-doc", "python3-djangorestframework/html"), start: "/" },
  typer: { folder: fetchedSphinx("python-typer-doc"), start: "/" },
  patroni: { folder: fetchedDebian("patroni-doc", "patroni/html"), start: "/" },
  pgbackrest: { folder: fetchedDebian("pgbackrest-doc", "pgbackrest-doc/html"), start: "/" },
  pelican: { folder: fetchedDebian("pelican-doc", "pelican/html"), start: "/" },
  supervisor: { folder: fetchedDebian("supervisor-doc", "supervisor/html"), start: "/" },
  ocrmypdf: { folder: fetchedDebian("ocrmypdf-doc", "ocrmypdf/html"), start: "/" },
  sqlfluff: { folder: fetchedDebian("sqlfluff-doc", "sqlfluff/html"), start: "/" },
  kitty: { folder: fetchedDebian("kitty-doc", "kitty/html"), start: "/" },
  certbot: { folder: fetchedDebian("python-certbot-doc", "python3-certbot/html"), start: "/" },
  varnish: { folder: fetchedDebian("varnish-doc", "varnish/html"), start: "/" },
  buildbot: { folder: fetchedDebian("buildbot-doc", "buildbot/html"), start: "/" },
  exim4: { folder: fetchedDebian("exim4-doc-html", "exim4-doc-html/spec_html"), start: "/" },
  llvm: { folder: fetchedSphinx("llvm-15-doc"), start: "/" },
  pandas: { folder: fetchedSphinx("python-pandas-doc"), start: "/" },
  sqlalchemy: { folder: fetchedSphinx("python-sqlalchemy-doc"), start: "/" },
  cmake: { folder: fetchedDebian("cmake-doc", "cmake-data/html"), start: "/" },
  gtk4: { folder: fetchedDebian("libgtk-4-doc", "libgtk-4-doc/gtk4"), start: "/" },
  nova: { folder: fetchedSphinx("nova-doc"), start: "/" },
  python: { folder: fetchedDebian("python3.11-doc", "python3.11/html"), start: "/" },
} satisfies Record<string, Corpus>;
export type CorpusName = keyof typeof corpora;

/** Changes the text of a page by its path. For null, the page is served unchanged. */
export type Degrade = (path: string, text: string, type: string) => Response | string | null;

/** This also applies to files without an extension, such as LICENSE. */
const plain = "text/plain; charset=utf-8";
const types: Record<string, string> = {
  html: "text/html; charset=utf-8",
  md: "text/markdown; charset=utf-8",
  mdx: "text/markdown; charset=utf-8",
  css: "text/css",
  js: "text/javascript",
  txt: plain,
};

/** The file that a web server serves for a path, or null. */
export function fileOf(name: CorpusName, pathname: string): string | null {
  const { folder, prefix = "" }: Corpus = corpora[name];
  if (!pathname.startsWith(prefix)) return null;
  const path = resolve(folder, `.${decodeURIComponent(pathname.slice(prefix.length)) || "/"}`);
  if (path !== folder.replace(/\/$/, "") && !path.startsWith(folder.replace(/\/$/, "") + sep)) return null;
  const candidates = [path, join(path, "index.html"), `${path}.mdx`, join(path, "index.mdx")];
  return candidates.find((file) => existsSync(file) && statSync(file).isFile()) ?? null;
}

/** Serves a corpus on a free loopback port. */
export function serveCorpus(name: CorpusName, degrade: Degrade = () => null) {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const file = fileOf(name, pathname);
      if (file === null) return new Response("Not found", { status: 404 });
      const type = types[extname(file).slice(1)] ?? (extname(file) ? "application/octet-stream" : plain);
      if (!/html|markdown/.test(type)) return new Response(Bun.file(file), { headers: { "content-type": type } });
      const text = await Bun.file(file).text();
      const changed = degrade(pathname, text, type);
      if (changed instanceof Response) return changed;
      return new Response(changed ?? text, { headers: { "content-type": type } });
    },
  });
  const url = `http://127.0.0.1:${server.port}`;
  return { url, start: url + corpora[name].start, stop: () => void server.stop(true) };
}
