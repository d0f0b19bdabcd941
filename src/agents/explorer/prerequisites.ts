import { builtinModules } from "node:module";
import type { Check } from "../agent.ts";
import { findAnswer } from "./answer.ts";
import type { SectionIndex } from "./sections.ts";
import { cut, type ReadPage, type Session, type Steps, toCheck, useTool } from "./session.ts";

/** Something that a sample requires. */
type Need = { name: string; what: "package" | "variable"; line: number };

const script = /^(js|javascript|mjs|cjs|jsx|ts|typescript|tsx)$/;
const secret = /(TOKEN|KEY|SECRET|PASSWORD|CREDENTIALS?)$/;

/**
 * Checks whether the docs explain what the samples on the answer's page require: the packages that they import and the
 * secrets that they read.
 */
export async function* checkPrerequisites(session: Session, index: SectionIndex): Steps {
  const [best] = findAnswer(index, session).nearest;
  const readablePages = [...session.pages, ...session.surveyed].filter(({ problem }) => problem === null);
  const page = readablePages.find(({ url }) => url === best?.section.url);
  const needs = page === undefined ? [] : needsOf(page);
  if (page === undefined || needs.length === 0) return;
  yield* useTool(session, "check_prerequisites", { url: page.url }, async () => {
    // A package that no other page imports may belong to this example only.
    const isCommon = ({ name, what }: Need) =>
      what === "variable" || readablePages.some((other) => other !== page && imports(other, name));
    const checks = needs.filter(isCommon).map((need) =>
      toPrerequisiteCheck(
        page,
        need,
        readablePages.some((other) => explains(other, need)),
      ),
    );
    return { ok: true, output: { url: page.url, needs: needs.map(({ name }) => name) }, checks, value: undefined };
  });
}

function needsOf({ samples }: ReadPage): Need[] {
  const needs = new Map<string, Need>();
  for (const { code, line, language } of samples) {
    const add = (name: string, what: Need["what"]) => {
      if (!needs.has(name)) needs.set(name, { name, what, line });
    };
    if (script.test(language ?? ""))
      for (const match of code.matchAll(/(?:from|require\(|import\(?)\s*["']([^"'\s]+)["']/g)) {
        const name = packageOf(match[1]!);
        if (name !== null) add(name, "package");
      }
    for (const match of code.matchAll(
      /process\.env\.(\w+)|(?:environ(?:\.get\(|\[)|getenv\(|ENV\[|env\.get\()\s*["'](\w+)["']|\$\{?([A-Z]\w+)/g,
    )) {
      const name = match[1] ?? match[2] ?? match[3] ?? "";
      if (/^[A-Z][A-Z0-9]*_[A-Z0-9_]+$/.test(name) && secret.test(name)) add(name, "variable");
    }
  }
  return [...needs.values()];
}

/** The package of an import; null if it doesn't need to be installed. */
function packageOf(specifier: string): string | null {
  if (/^[./~#]|:/.test(specifier) || specifier.startsWith("@/")) return null;
  const name = specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
  return builtinModules.includes(name) ? null : name;
}

const imports = ({ samples }: ReadPage, name: string) =>
  samples.some(({ code }) => [`"${name}`, `'${name}`].some((quoted) => code.includes(quoted)));

function explains({ markdown, samples, headings }: ReadPage, { name, what }: Need): boolean {
  const word = RegExp.escape(name);
  if (what === "variable") {
    const inSamples = new RegExp(`\\b${word}\\s*[=:](?!=)`);
    return (
      samples.some(({ code }) => inSamples.test(code)) || new RegExp(`\\b${word}\\b`).test(withoutSamples(markdown))
    );
  }
  const install = new RegExp(
    `\\b(install|add|i|npx|bunx|dlx)\\b[^\\n]*[\\s"'\`]${word}(?![\\w-])|"${word}":\\s*"|//[^\\s"']*/${word}(?![\\w-])`,
  );
  const isInstall = headings.some(({ text }) => /\binstall/i.test(text));
  return (
    samples.some(({ code }) => install.test(code)) || install.test(markdown) || (isInstall && markdown.includes(name))
  );
}

const withoutSamples = (markdown: string) => markdown.replace(/^\s*(`{3,}|~{3,})[\s\S]*?^\s*\1/gm, "");

function toPrerequisiteCheck(page: ReadPage, { name, what, line }: Need, isExplained: boolean): Check {
  const base = { id: "prerequisite-explained", group: "page", subject: `${page.url} ${name}`, url: page.url } as const;
  const subject = what === "package" ? `how to install “${name}”` : `where “${name}” comes from`;
  if (isExplained)
    return toCheck({ ...base, status: "pass", weight: 4, line, message: `The docs say ${subject}`, needed: true });
  return toCheck({
    ...base,
    ...{ status: "fail", weight: 10, line, quote: name, needed: true },
    message: `No page that was read says ${subject}, which the sample uses`,
    fix: `Explain ${subject}, and link to it from ${cut(page.title, 100) || page.url}.`,
  });
}
