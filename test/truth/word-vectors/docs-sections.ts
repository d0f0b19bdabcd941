import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { toStems } from "../../../src/agents/explorer/goal.ts";

/** A part of a page under one heading, as stems: of its own heading, of the title and the headings above, and of its text. */
export type DocsSection = { docs: string; name: string[]; path: string[]; body: string[] };

/**
 * Docs on which the explorer is measured, by the owner or the name of their repository: those of goals/, and those of goals that others wrote.
 * Vectors learned from them would know the answers.
 */
const measured = new Set(
  `aiohttp ant httpd attrs borg bottle buildbot bun celery certbot click cmake django docker moby django-rest-framework eigen otp exim
fastify flask git gtk icinga2 jinja kitty knot commons-lang lemonldap-ng libsoup llvm-project mkdocs node nova ocrmypdf octave pandas
patroni peewee pelican pgbackrest pino postfix postgres privoxy mongo-python-driver pytest cpython racket requests rsyslog rust-lang
scrapy slurm sqlalchemy sqlfluff sqlite stylelint supervisor tornado twig typer undici varnish-cache
caddyserver cert-manager headscale honojs kedacore litestream.io nats-io prometheus authelia fastapi fluxcd helm linkerd sveltejs vitejs
woodpecker-ci etcd-io gofiber goreleaser jestjs ntfy openfaas aws-powertools uv`.split(/\s+/),
);

/** Docs with more sections than this are cut, so that the largest don't decide what words mean. */
const maxSections = 6000;
/** Further words of a section are left out. */
const maxWords = 220;
const minWords = 12;
/** Sections that begin with the same characters are versions of one page. */
const sameStart = 160;
const maxFileBytes = 400_000;

/** The sections of the Markdown and reStructuredText files in each folder of `folder`, which has the docs of one tool. */
export function* readDocs(folder: string): Generator<DocsSection> {
  for (const docs of readdirSync(folder).sort()) {
    if (docs.split("+").some((name) => measured.has(name.toLowerCase()))) continue;
    const starts = new Set<string>();
    let count = 0;
    for (const file of filesIn(join(folder, docs))) {
      if (count >= maxSections) break;
      const text = readFileSync(file, "utf8");
      for (const { path, body } of sectionsOf(file.endsWith(".rst") ? toMarkdown(text) : text)) {
        const start = body.trim().slice(0, sameStart);
        if (starts.has(start)) continue;
        starts.add(start);
        const section = {
          docs,
          name: toStems(path.at(-1) ?? ""),
          path: toStems(path.slice(0, -1).join(" ")),
          body: toStems(body).slice(0, maxWords),
        };
        if (section.name.length === 0 || section.body.length < minWords) continue;
        count++;
        yield section;
      }
    }
  }
}

/** The files of docs in a folder, the last by name first: of several versions, that is the newest. */
const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(md|mdx|markdown|rst)$/.test(name))
    .map((name) => join(folder, name))
    .filter((file) => isSmallFile(file))
    .sort()
    .reverse();

function isSmallFile(file: string): boolean {
  const status = statSync(file);
  return status.isFile() && status.size <= maxFileBytes;
}

/** What people read of a Markdown file: without samples, tags, URLs and template marks. */
const plainText = (markdown: string): string =>
  markdown
    .replace(/^---\n[\s\S]*?\n---\n/, "")
    .replace(/```[\s\S]*?```|~~~[\s\S]*?~~~/g, " ")
    .replace(/<[^>]+>|\{\{.*?\}\}|\{%.*?%\}/g, " ")
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/https?:\S+/g, " ")
    .replace(/^(import|export) .*$/gm, "");

/** The sections of a Markdown file; the title and the description in its front matter count as its first heading and sentence. */
function sectionsOf(markdown: string): { path: string[]; body: string }[] {
  const frontMatter = /^---\n([\s\S]*?)\n---\n/.exec(markdown)?.[1] ?? "";
  const field = (name: string) => new RegExp(`^(?:${name}):\\s*["']?(.*?)["']?\\s*$`, "m").exec(frontMatter)?.[1];
  const title = field("title");
  const description = field("description|summary|excerpt");
  let path = title ? [title] : [];
  return plainText(markdown)
    .split(/^(?=#{1,4} )/m)
    .map((part, position) => {
      const heading = /^(#{1,4}) (.*)\n?/.exec(part);
      if (heading) path = [...path.slice(0, heading[1]!.length - 1), heading[2]!.replace(/[`*#]|\{.*$/g, "").trim()];
      const body = heading ? part.slice(heading[0].length) : part;
      return { path, body: position === 0 && description ? `${description}. ${body}` : body };
    });
}

/** reStructuredText with the headings of Markdown, and without its directives and samples. */
function toMarkdown(text: string): string {
  const marks: string[] = [];
  const lines = text.split("\n");
  const result: string[] = [];
  let sampleIndent: number | null = null;
  for (const [index, line] of lines.entries()) {
    const indent = line.search(/\S/);
    if (sampleIndent !== null && (indent === -1 || indent > sampleIndent)) continue;
    sampleIndent = null;
    const underline = /^([=\-~^"'`*+#:._])\1{2,}\s*$/.exec(lines[index + 1] ?? "");
    const isUnderline = /^([=\-~^"'`*+#:._])\1{2,}\s*$/.test(line);
    if (isUnderline) continue;
    if (underline && indent === 0 && lines[index + 1]!.trim().length >= line.trim().length) {
      if (!marks.includes(underline[1]!)) marks.push(underline[1]!);
      result.push(`${"#".repeat(Math.min(4, marks.indexOf(underline[1]!) + 1))} ${roleTexts(line)}`);
    } else if (
      /^\s*\.\. (code|code-block|sourcecode|literalinclude|image|figure|toctree|raw|_)\b|^\s*\.\. _/.test(line)
    ) {
      sampleIndent = indent;
    } else {
      if (line.endsWith("::") && !line.trim().startsWith("..")) sampleIndent = indent;
      result.push(roleTexts(line.replace(/^\s*\.\. [\w-]+::/, " ").replace(/^\s*:[\w ]+:/, " ")));
    }
  }
  return result.join("\n");
}

/** The texts of roles and links: `:ref:`text <target>``. */
const roleTexts = (line: string): string =>
  line.replace(/(?::[\w:+-]+:)?`([^`<]*?)\s*(?:<[^`]*>)?`_*/g, "$1").replace(/``/g, "");
