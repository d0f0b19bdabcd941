import type { Check } from "../agent.ts";
import { type CodeSample, lineInSample } from "../page.ts";
import { findAnswer } from "./answer.ts";
import type { ApiDescription } from "./api-contract.ts";
import { isAboutVersions } from "./api-samples.ts";
import { checkCopying } from "./copying.ts";
import { languageOf } from "./inferred-languages.ts";
import {
  hasOneWordMore,
  importedNamesOf,
  importsOf,
  installsOf,
  isMisspelled,
  isNameExact,
  isRelated,
  isTransposed,
  type Package,
  provides,
} from "./packages.ts";
import { describesSecret, isOfProduct, namesSecret, type Secret, secretsOf, speaksOfSecret } from "./secrets.ts";
import type { SectionIndex } from "./sections.ts";
import { cut, type ReadPage, type Session, type Steps, toCheck, useTool } from "./session.ts";

/** What the samples of the answer's page require, and whether the docs say where it comes from. */
type Need = { name: string; subject: string; line: number; isExplained: boolean; isCertain: boolean };

/**
 * Checks whether the docs explain what the samples on the answer's page require: the packages that they import, the
 * secrets that they read, and what readers have to fill in.
 */
export async function* checkPrerequisites(
  session: Session,
  index: SectionIndex,
  descriptions: ApiDescription[],
): Steps {
  const [best] = findAnswer(index, session).nearest;
  const readablePages = [...session.pages, ...session.surveyed].filter(({ problem }) => problem === null);
  const page = readablePages.find(({ url }) => url === best?.section.url);
  if (page === undefined) return;
  const products = productNamesOf(session);
  const installs = new Map(readablePages.map((each) => [each, installsOf(shownTextOf(each))]));
  const isPageMissing = session.incompletePages.has(page) || lacksNeededPage(session, readablePages);
  const needs = [
    ...packageNeeds(page, readablePages, installs, products),
    ...secretNeeds(page, readablePages, products),
  ].filter(({ isExplained }) => isExplained || !isPageMissing);
  const checks = [
    ...needs.map((need) => toPrerequisiteCheck(page, need)),
    ...versionChecks(page, installs),
    ...checkCopying(page, readablePages, descriptions),
  ];
  if (checks.length === 0) return;
  yield* useTool(session, "check_prerequisites", { url: page.url }, async () => {
    return { ok: true, output: { url: page.url, needs: needs.map(({ name }) => name) }, checks, value: undefined };
  });
}

/** Whether a page that the answer depends on could not be read, or doesn't show its content. Then it is unknown what the page explains. */
function lacksNeededPage({ neededUrls, incompletePages, listings }: Session, readablePages: ReadPage[]): boolean {
  const completePages = readablePages.filter((page) => !incompletePages.has(page));
  const readUrls = new Set([...completePages.flatMap(({ addresses }) => addresses), ...listings.map(({ url }) => url)]);
  return [...neededUrls].some((url) => !readUrls.has(url));
}

/** What a page shows, with the samples in tabs that are closed at first. Its Markdown doesn't have these samples. */
const shownTextOf = ({ markdown, samples }: ReadPage): string =>
  [markdown, ...samples.flatMap(({ code }) => (markdown.includes(code.trim()) ? [] : code))].join("\n");

/** What the product may be called: the titles of the pages that the reader starts from, and its hosts. */
function productNamesOf({ pages, origins }: Session): string[] {
  const titles = pages.slice(0, 1).flatMap(({ title, headings }) => [title, headings[0]?.text ?? ""]);
  const hosts = [...origins].flatMap((origin) => new URL(origin).hostname.split(".").slice(0, -1));
  const words = [...titles.flatMap((title) => title.split(/[^\p{L}\d]+/u)), ...hosts];
  return words.filter((word) => word.length >= 3 && !/^\d+$/.test(word));
}

const keyOf = ({ ecosystem, name }: Package) => `${ecosystem} ${name}`;

/** A sample of the answer's page, with the packages that it imports. */
type ImportingSample = { sample: CodeSample; imports: Package[] };

/**
 * The imported packages whose installation the docs must explain: those that the docs import on several pages or, if they have one page, in several
 * samples. Another package may belong to one example only, unless its name is nearly that of a package that the docs install.
 */
function packageNeeds(
  page: ReadPage,
  pages: ReadPage[],
  installs: Map<ReadPage, Package[]>,
  products: string[],
): Need[] {
  const installedPackages = [...installs.values()].flat();
  const sameEcosystem = ({ ecosystem }: Package) =>
    installedPackages.filter((installed) => installed.ecosystem === ecosystem);
  const own = page.samples.map((sample): ImportingSample => ({ sample, imports: importsOf(sample) }));
  const others = pages.filter((other) => other !== page).flatMap(({ samples }) => samples.flatMap(importsOf));
  const isShared = sharedImports(own, others);
  const isIntended = misnamedImports([...others, ...own.flatMap(({ imports }) => imports)], pages);
  const findIntendedPackage = (imported: Package): Package | undefined =>
    imported.ecosystem === "npm"
      ? sameEcosystem(imported).find((installed) => isIntended(installed, imported))
      : undefined;
  const needs = new Map<string, Need>();
  for (const { sample, imports } of own)
    for (const imported of imports) {
      const { name } = imported;
      // Where packages may be imported under other names, only those of the product are certain to need an installation of their name.
      const isCertain = products.some((product) => isRelated(name, product));
      if (!(isCertain || isNameExact(imported)) || needs.has(name)) continue;
      const isInstalled = installedPackages.some((installed) => provides(installed, imported));
      const intended = isInstalled ? undefined : findIntendedPackage(imported);
      if (!isShared(imported) && !intended) continue;
      const alike = intended ?? sameEcosystem(imported).find((installed) => isRelated(installed.name, name));
      const subject = `how to install “${name}”${!isInstalled && alike ? ` (they install “${alike.name}”)` : ""}`;
      const isExplained = isInstalled || pages.some((other) => namesInInstallation(other, name));
      needs.set(name, { name, subject, line: lineInSample(sample, name), isExplained, isCertain });
    }
  return [...needs.values()];
}

/**
 * Returns whether other pages import a package, too. If they import nothing of its ecosystem, returns whether several samples of the page import it.
 */
function sharedImports(own: ImportingSample[], others: Package[]): (imported: Package) => boolean {
  const otherEcosystems = new Set(others.map(({ ecosystem }) => ecosystem));
  const otherKeys = new Set(others.map(keyOf));
  const ownCounts = new Map<string, number>();
  for (const { imports } of own)
    for (const key of new Set(imports.map(keyOf))) ownCounts.set(key, (ownCounts.get(key) ?? 0) + 1);
  return (imported) =>
    otherEcosystems.has(imported.ecosystem) ? otherKeys.has(keyOf(imported)) : ownCounts.get(keyOf(imported))! > 1;
}

/**
 * Returns whether an import means an installed package of another name: two letters are in the wrong order, or nobody imports the installed package
 * and one name may be a misspelling of the other. If somebody imports the installed package, samples must import the same from both. Then one name
 * may also have one word more than the other.
 */
function misnamedImports(imports: Package[], pages: ReadPage[]): (installed: Package, imported: Package) => boolean {
  const importedKeys = new Set(imports.map(keyOf));
  const importedNames = importedNamesOf(pages.flatMap(({ samples }) => samples));
  const importTheSame = (installed: Package, imported: Package) =>
    [...(importedNames.get(imported.name) ?? [])].some((each) => importedNames.get(installed.name)?.has(each));
  return (installed, imported) =>
    isTransposed(installed.name, imported.name) ||
    (importedKeys.has(keyOf(installed))
      ? (hasOneWordMore(installed.name, imported.name) || isMisspelled(installed.name, imported.name)) &&
        importTheSame(installed, imported)
      : isMisspelled(installed.name, imported.name));
}

/**
 * Verbs of a command that gets a package. A command that starts or calls a program doesn't say how to get it, even if the program and the package
 * have the same name.
 */
const installVerb = /\b(?:install|add|get|require|download|clone|pull|create|with)\b/;

/** The lines of a sample that use a package. The package must already be installed for them. */
function usesOf(sample: CodeSample, name: string): string[] {
  const lines = sample.code.split("\n").filter((line) => line.includes(name));
  if (/^(?:sh|bash|shell|zsh|console|terminal)$/.test(languageOf(sample)))
    return lines.filter((line) => !installVerb.test(line));
  return importsOf(sample).some((each) => each.name === name) ? lines : [];
}

/** Whether a page about installation names a package, or links to where it is. */
function namesInInstallation({ markdown: wholeMarkdown, headings, samples }: ReadPage, name: string): boolean {
  const uses = samples.flatMap((sample) => usesOf(sample, name));
  const markdown = uses.reduce((text, line) => text.replaceAll(line.trim(), ""), wholeMarkdown);
  const word = `(?<![\\w@/.-])${RegExp.escape(name)}(?![\\w/-])`;
  const isInstallation = headings.some(({ text }) => /\binstall/i.test(text));
  return (
    (isInstallation && new RegExp(word).test(markdown)) ||
    new RegExp(`//[^\\s"']*/${RegExp.escape(name)}(?![\\w@-])`).test(markdown)
  );
}

function secretNeeds(page: ReadPage, pages: ReadPage[], products: string[]): Need[] {
  const secrets = new Map<string, Secret & { line: number }>();
  for (const sample of page.samples)
    for (const secret of secretsOf(sample)) {
      const at = lineInSample(sample, secret.name);
      const known = secrets.get(secret.name);
      secrets.set(secret.name, { ...secret, line: known?.line ?? at, isSent: secret.isSent || known?.isSent === true });
    }
  const samples = pages.flatMap((each) => each.samples);
  const knownNames = samples.flatMap((sample) => [...secretsOf(sample), ...importsOf(sample)].map(({ name }) => name));
  const isNamed = (name: string) => pages.some((each) => namesSecret(each, name));
  const isCertain = (secret: Secret) => isOfProduct(secret, products, knownNames);
  // General words such as "your API key" are about the secret that the docs name. If they name none, these words are about the secret of the product.
  // The docs must describe any other secret on its own.
  const namedSecret = samples.flatMap(secretsOf).find(({ name }) => isNamed(name));
  const isExplained = (secret: Secret) => {
    if (isNamed(secret.name)) return true;
    if (namedSecret === undefined && isCertain(secret))
      return pages.some((each) => speaksOfSecret(each, secret, each === page));
    return pages.some((each) => describesSecret(each, secret, namedSecret?.name));
  };
  // A secret that isn't named after the product and isn't sent anywhere is the reader's own.
  return [...secrets.values()]
    .filter((secret) => secret.isSent || isCertain(secret))
    .map((secret) => ({
      name: secret.name,
      subject: `where “${secret.name}” comes from`,
      line: secret.line,
      isExplained: isExplained(secret),
      isCertain: isCertain(secret),
    }));
}

function toPrerequisiteCheck(page: ReadPage, { name, subject, line, isExplained, isCertain }: Need): Check {
  const base = { id: "prerequisite-explained", group: "page", subject: `${page.url} ${name}`, url: page.url } as const;
  if (isExplained)
    return toCheck({ ...base, status: "pass", weight: 4, line, message: `The docs say ${subject}`, needed: true });
  return toCheck({
    ...base,
    status: isCertain ? "fail" : "warn",
    weight: isCertain ? 10 : 4,
    line,
    quote: name,
    needed: true,
    message: `No page that was read says ${subject}, which the sample uses`,
    fix: `Explain ${subject}, and link to it from ${cut(page.title, 100) || page.url}.`,
  });
}

/** Compares the major versions that the answer's page imports or installs with those that the other pages install. */
function versionChecks(page: ReadPage, installs: Map<ReadPage, Package[]>): Check[] {
  const used = page.samples.flatMap((sample) =>
    [...importsOf(sample), ...installsOf(sample.code)].map((each) => ({
      ...each,
      line: lineInSample(sample, each.name),
    })),
  );
  // Release notes and archived pages also show what is no longer right.
  const installed = [...installs].flatMap(([other, list]) =>
    other === page || isAboutVersions(other) || other.isUnlisted ? [] : list,
  );
  const problems = new Map<string, Check>();
  for (const { name, major: givenMajor, ecosystem, hasFirstPath, line } of used) {
    const sameInstalled = installed.filter((each) => each.ecosystem === ecosystem && each.name === name);
    const majors = sameInstalled.flatMap((each) => each.major ?? []);
    // The path of a Go module has no version up to 1. If the docs install the module by such a path, too, both are the same.
    const isFirst = hasFirstPath && !sameInstalled.some((each) => each.hasFirstPath);
    const major = givenMajor ?? (isFirst ? 1 : null);
    if (major === null || majors.length === 0 || majors.includes(major)) continue;
    problems.set(
      name,
      toCheck({
        id: "sdk-version-matches",
        group: "page",
        subject: `${page.url} ${name}`,
        url: page.url,
        line,
        status: "fail",
        weight: 4,
        quote: name,
        needed: true,
        message: `The sample uses version ${major} of “${name}”, but the docs install version ${majors[0]}`,
        fix: `Use the version of “${name}” that the docs install.`,
      }),
    );
  }
  return [...problems.values()];
}
