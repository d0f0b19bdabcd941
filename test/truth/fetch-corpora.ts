import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { $ } from "bun";
import { fetchedFolder } from "./corpora.ts";

// Downloads the documentation of some Debian and npm packages, without installing them, for the goals in goals/field.json and
// goals/unseen.json: bun run truth:corpora

const debian = [
  ...["borgbackup-doc", "mkdocs-doc", "python-celery-doc", "python-scrapy-doc", "apache2-doc", "python-pymongo-doc"],
  ...["libcommons-lang3-java-doc", "rsyslog-doc", "python-pytest-doc", "python-aiohttp-doc", "knot-doc", "postfix-doc"],
  ...["nodejs-doc", "php-twig-doc", "python-tornado-doc"],
];
const npm = ["fastify"];

for (const name of [...debian, ...npm]) {
  const folder = join(fetchedFolder, name);
  mkdirSync(folder, { recursive: true });
  if (debian.includes(name)) await $`apt-get download -q ${name} && dpkg-deb -x ${name}_*.deb .`.cwd(folder).quiet();
  else await $`npm pack --silent ${name} && tar xzf ${name}-*.tgz`.cwd(folder).quiet();
  console.log(folder);
}
