import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { $ } from "bun";
import { fetchedFolder } from "./corpora.ts";

// Downloads the documentation of some Debian and npm packages, without installing them, for the goals in goals/field.json,
// goals/unseen.json, goals/third.json, goals/fourth.json, goals/fifth.json, goals/sealed.json and goals/sealed-second.json:
// bun run truth:corpora

const debian = [
  ...["borgbackup-doc", "mkdocs-doc", "python-celery-doc", "python-scrapy-doc", "apache2-doc", "python-pymongo-doc"],
  ...["libcommons-lang3-java-doc", "rsyslog-doc", "python-pytest-doc", "python-aiohttp-doc", "knot-doc", "postfix-doc"],
  ...["nodejs-doc", "php-twig-doc", "python-tornado-doc", "postgresql-doc-15", "python-django-doc", "slurm-wlm-doc"],
  ...["ant-doc", "icinga2-doc", "docker-doc", "privoxy", "lemonldap-ng-doc", "octave-doc", "rust-doc", "erlang-doc"],
  ...["libeigen3-doc", "libsoup-3.0-doc", "racket-doc", "python-djangorestframework-doc", "python-typer-doc"],
  ...["patroni-doc", "pgbackrest-doc", "pelican-doc", "supervisor-doc", "ocrmypdf-doc", "sqlfluff-doc", "kitty-doc"],
  ...["python-certbot-doc", "varnish-doc", "buildbot-doc", "exim4-doc-html", "llvm-15-doc", "python-pandas-doc"],
  ...["python-sqlalchemy-doc", "cmake-doc", "libgtk-4-doc", "nova-doc", "python3.11-doc"],
];
/** Later versions of stylelint have no docs in their package. */
const npm = { fastify: "fastify", stylelint: "stylelint@13.13.1" };

for (const name of debian) {
  const folder = makeFolder(name);
  await $`apt-get download -q ${name} && dpkg-deb -x ${name}_*.deb .`.cwd(folder).quiet();
  // Debian compresses large documents.
  await $`find . -type f \( -name '*.md.gz' -o -name '*.html.gz' \) -exec gunzip -f {} +`.cwd(folder).quiet();
}
for (const [name, version] of Object.entries(npm)) {
  const folder = makeFolder(name);
  await $`npm pack --silent ${version} && tar xzf ${name}-*.tgz`.cwd(folder).quiet();
}

function makeFolder(name: string): string {
  const folder = join(fetchedFolder, name);
  mkdirSync(folder, { recursive: true });
  console.log(folder);
  return folder;
}
