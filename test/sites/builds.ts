import { cpSync, existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { $ } from "bun";

/** The URL that each build is made for. */
export const at = "https://docs.acme.example/latest/";
const base = new URL(at).pathname;

/** Where sources, builders and builds are kept between runs. Nothing of them belongs to this repository. */
const folder = join(tmpdir(), "evald-site-builds");

/** Docs in Markdown that npm packages contain, with a task that they explain. */
const sources = {
  fastify: { version: "fastify@5.6.1", docs: "docs", goal: "Validate the body of a request with a JSON schema" },
  undici: { version: "undici@7.16.0", docs: "docs/docs", goal: "Send requests through a proxy" },
  pino: { version: "pino@9.13.0", docs: "docs", goal: "Write logs to a file with a transport" },
  stylelint: { version: "stylelint@13.13.1", docs: "docs", goal: "Ignore a line with a comment" },
};
type SourceName = keyof typeof sources;

/** A folder with Markdown that a builder turns into HTML in `out`. `pages`: paths without `.md`, the start page first. */
type Project = { folder: string; out: string; title: string; pages: string[] };

type Builder = { packages: string[]; build: (project: Project, modules: string) => Promise<void> };

const write = (path: string, text: string): void => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
};

const titleOf = (markdown: string, path: string): string =>
  /^#\s+(.+)$/m.exec(markdown)?.[1]?.replace(/[<>`*]/g, "") ?? path;

/** Runs the program of an installed builder. */
const run = (modules: string, program: string, args: string[], cwd: string) =>
  $`${join(modules, ".bin", program)} ${args}`
    .cwd(cwd)
    .env({ ...process.env, ASTRO_TELEMETRY_DISABLED: "1" })
    .quiet();

const vitepress = (cleanUrls: boolean): Builder => ({
  packages: ["vitepress@1.6.4"],
  async build({ folder: source, out, title, pages }, modules) {
    const sidebar = pages.map((page) => ({ text: page, link: page === "index" ? "/" : `/${page}` }));
    const config = { title, base, cleanUrls, ignoreDeadLinks: true, outDir: out, themeConfig: { sidebar } };
    // Text in angle brackets would be a component, and text in braces an expression.
    write(
      join(source, ".vitepress/config.mjs"),
      `export default { ...${JSON.stringify(config)}, markdown: { html: false }, vue: { template: { compilerOptions: { delimiters: ["[[[[", "]]]]"] } } } };`,
    );
    await run(modules, "vitepress", ["build", source], source);
  },
});

const eleventy: Builder = {
  packages: ["@11ty/eleventy@3.1.2"],
  async build({ folder: source, out, title, pages }, modules) {
    const items = pages.map((page) => `<li><a href="/${page === "index" ? "" : `${page}/`}">${page}</a></li>`).join("");
    write(
      join(source, "_includes/page.html"),
      `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{{ title }}</title></head><body><nav><ul>${items}</ul></nav><main>{{ content }}</main><footer>${title}</footer></body></html>`,
    );
    write(
      join(source, "eleventy.config.mjs"),
      `import { EleventyHtmlBasePlugin, InputPathToUrlTransformPlugin, IdAttributePlugin } from "@11ty/eleventy";
      export default function (config) {
        for (const plugin of [InputPathToUrlTransformPlugin, EleventyHtmlBasePlugin, IdAttributePlugin]) config.addPlugin(plugin, { checkDuplicates: false });
        config.addGlobalData("layout", "page.html");
        return { pathPrefix: ${JSON.stringify(base)}, markdownTemplateEngine: false, htmlTemplateEngine: "liquid" };
      }`,
    );
    await run(modules, "eleventy", ["--config=eleventy.config.mjs", "--input=.", `--output=${out}`, "--quiet"], source);
  },
};

const starlight = (format: "directory" | "file"): Builder => ({
  packages: ["astro@5.14.1", "@astrojs/starlight@0.36.0"],
  async build({ folder: source, out, title, pages }, modules) {
    const content = join(source, "src/content/docs");
    for (const page of pages) {
      const markdown = readFileSync(join(source, `${page}.md`), "utf8");
      write(
        join(content, `${page.toLowerCase()}.md`),
        `---\ntitle: ${JSON.stringify(titleOf(markdown, page))}\n---\n${markdown.replace(/^---\n.*?\n---\n/s, "").replace(/^#\s+.+$/m, "")}`,
      );
    }
    write(
      join(source, "src/content.config.ts"),
      `import { defineCollection } from "astro:content"; import { docsLoader } from "@astrojs/starlight/loaders"; import { docsSchema } from "@astrojs/starlight/schema";
      export const collections = { docs: defineCollection({ loader: docsLoader(), schema: docsSchema() }) };`,
    );
    write(
      join(source, "astro.config.mjs"),
      `import { defineConfig, passthroughImageService } from "astro/config"; import starlight from "@astrojs/starlight";
      export default defineConfig({ site: ${JSON.stringify(new URL(at).origin)}, base: ${JSON.stringify(base)}, outDir: ${JSON.stringify(out)}, build: { format: ${JSON.stringify(format)} }, image: { service: passthroughImageService() }, integrations: [starlight({ title: ${JSON.stringify(title)}, pagefind: false })] });`,
    );
    await run(modules, "astro", ["build"], source);
  },
});

const builds: { name: string; source: SourceName; builder: Builder }[] = [
  { name: "vitepress-fastify", source: "fastify", builder: vitepress(true) },
  { name: "vitepress-undici", source: "undici", builder: vitepress(false) },
  { name: "eleventy-pino", source: "pino", builder: eleventy },
  { name: "eleventy-stylelint", source: "stylelint", builder: eleventy },
  { name: "starlight-undici", source: "undici", builder: starlight("directory") },
  { name: "starlight-pino", source: "pino", builder: starlight("file") },
];

/** A built site, and a task for its docs. */
export type Build = { name: string; folder: string; goal: string };

/** Makes the builds that don't exist yet: installs their sources and builders from npm, and runs them. */
export async function makeBuilds(): Promise<Build[]> {
  const made: Build[] = [];
  for (const { name, source, builder } of builds) {
    const out = join(folder, "builds", name);
    if (!existsSync(join(out, "index.html"))) await makeBuild(name, source, builder, out);
    made.push({ name, folder: out, goal: sources[source].goal });
  }
  return made;
}

async function makeBuild(name: string, source: SourceName, { packages, build }: Builder, out: string): Promise<void> {
  const { version, docs } = sources[source];
  const installation = join(folder, "builders", packages[0]!.replace(/\W+/g, "-"));
  const modules = join(installation, "node_modules");
  if (!existsSync(modules)) {
    mkdirSync(installation, { recursive: true });
    await $`npm install --silent --no-audit --no-fund --prefix ${installation} ${packages}`.quiet();
  }
  const unpacked = join(folder, "sources", source);
  if (!existsSync(unpacked)) {
    mkdirSync(unpacked, { recursive: true });
    await $`npm pack --silent ${version} && tar xzf *.tgz`.cwd(unpacked).quiet();
  }
  // Within the installation, so that configurations find the builder's packages.
  const project = join(installation, name);
  const unfinished = `${out}.unfinished`;
  for (const each of [project, unfinished]) rmSync(each, { recursive: true, force: true });
  cpSync(join(unpacked, "package", docs), project, { recursive: true });
  const pages = globSync("**/*.md", { cwd: project })
    .map((path) => path.slice(0, -".md".length))
    .filter((page) => page !== "index")
    .sort();
  const list = pages.map((page) => `- [${page}](${page}.md)`).join("\n");
  if (!existsSync(join(project, "index.md")))
    write(join(project, "index.md"), `# ${source}\n\nThe pages of these docs:\n\n${list}\n`);
  console.log(`Building ${name} (${pages.length + 1} pages)`);
  await build({ folder: project, out: unfinished, title: source, pages: ["index", ...pages] }, modules);
  renameSync(unfinished, out);
}
