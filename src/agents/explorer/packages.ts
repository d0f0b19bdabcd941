import { builtinModules } from "node:module";
import type { CodeSample } from "../page.ts";
import type { GrammarName } from "./grammars.ts";
import { isValidIn } from "./inferred-languages.ts";

/**
 * A package as a sample imports it, or as an installation names it. `major`: its major version; null if not given. `hasFirstPath`: its name is the
 * path of a Go module without a major version. Then its version is 0 or 1, because a later major version is part of the path.
 */
export type Package = { ecosystem: EcosystemName; name: string; major: number | null; hasFirstPath?: true };

type Ecosystem = {
  languages: RegExp;
  /** Parses samples without a label that import something. */
  grammar?: GrammarName;
  /** Programs that install packages: alternatives of a regular expression. */
  programs: string;
  /** Their command that installs a package, if it isn't one of the usual commands. */
  verb?: RegExp;
  /** Whether a package is imported under its own name. */
  isExact: boolean;
  /** Finds the imports in a sample. Group: the name. */
  imports: RegExp;
  /** Whether a name is part of the language. */
  isStandard(name: string): boolean;
};

const names = (text: string) => new Set(text.split(/\s+/));
const pythonModules = names(
  "abc aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys compileall concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest email encodings ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp importlib inspect io ipaddress itertools json keyword lib2to3 linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap this threading time timeit tkinter token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo",
);
const rubyLibraries = names(
  "abbrev base64 benchmark bigdecimal bundler cgi coverage csv date delegate digest drb English erb etc expect fcntl fiddle fileutils find forwardable getoptlong io ipaddr irb json logger matrix minitest monitor mutex_m net objspace observer open3 open-uri openssl optparse ostruct pathname pp prettyprint prime pstore psych pty racc rake rbconfig rdoc readline resolv rinda ripper securerandom set shellwords singleton socket stringio strscan syslog tempfile time timeout tmpdir tracer tsort un uri weakref yaml zlib",
);

const matchesNothing = /(?!)/g;

const ecosystems = {
  npm: {
    languages: /^(?:m?js|cjs|javascript|jsx|m?ts|cts|typescript|tsx)$/,
    grammar: "script",
    programs: "npm|pnpm|yarn|bun|deno|npx|bunx|jsr",
    isExact: true,
    imports: /(?:\bfrom|\brequire\(|\bimport\(?)\s*["']([^"'\s]+)["']/g,
    isStandard: (name) =>
      builtinModules.includes(name) ||
      /^[./~#$]|^(?:node|bun|virtual|file|data):|^@(?:theme|site|generated)?\//.test(name),
  },
  pypi: {
    languages: /^(?:python3?|py3?|pycon|ipython)$/,
    grammar: "python",
    programs: "pip3?|pipx|pipenv|uv|poetry|pdm|rye|conda|mamba",
    isExact: false,
    imports: /^[ \t]*(?:>>> )?(?:from|import)[ \t]+([A-Za-z_]\w*)/gm,
    isStandard: (name) => pythonModules.has(name) || name.startsWith("_"),
  },
  go: {
    languages: /^(?:go|golang)$/,
    grammar: "go",
    programs: "go",
    isExact: true,
    imports: /^[ \t]*(?:import[ \t]+)?(?:[\w.]+[ \t]+)?"([\w-]+(?:\.[\w-]+)+\/[^"\s]+)"[ \t]*$/gm,
    isStandard: () => false,
  },
  cargo: {
    languages: /^(?:rust|rs)$/,
    grammar: "rust",
    programs: "cargo",
    isExact: true,
    imports: /^[ \t]*(?:pub[ \t]+)?(?:use[ \t]+(?:::)?|extern[ \t]+crate[ \t]+)(\w+)/gm,
    isStandard: (name) => /^(?:std|core|alloc|crate|self|super|proc_macro)$/.test(name),
  },
  gem: {
    languages: /^(?:ruby|rb|irb)$/,
    programs: "gem|bundle",
    isExact: false,
    imports: /^[ \t]*require[ \t(]+["']([\w-]+)/gm,
    isStandard: (name) => rubyLibraries.has(name),
  },
  composer: {
    languages: /^php$/,
    grammar: "php",
    programs: "composer",
    isExact: false,
    imports: /^[ \t]*use[ \t]+\\?([A-Z]\w*\\\w+)/gm,
    isStandard: () => false,
  },
  nuget: {
    languages: /^(?:c#|csharp|cs|f#|fsharp|vb)$/,
    programs: "dotnet|nuget|paket|Install-Package",
    isExact: false,
    imports: /^[ \t]*(?:using|open|Imports)[ \t]+(?:static[ \t]+)?([A-Z][\w.]*);?[ \t]*$/gm,
    isStandard: (name) => /^(?:System|Microsoft|Windows)\b/.test(name),
  },
  maven: {
    languages: /^(?:java|kotlin|kt|scala|groovy)$/,
    grammar: "java",
    programs: "mvn|gradle|sbt",
    isExact: false,
    // The first part of a reversed domain doesn't identify a package.
    // Names that start with a capital letter are those of classes.
    imports:
      /^[ \t]*import[ \t]+(?:static[ \t]+)?(?!java\b|javax\b|kotlin\b|scala\b|android)[a-z]\w*\.([a-z]\w*(?:\.[a-z]\w*)*)/gm,
    isStandard: () => false,
  },
  pub: {
    languages: /^dart$/,
    programs: "dart|flutter",
    isExact: true,
    imports: /^[ \t]*import[ \t]+["']package:(\w+)\//gm,
    isStandard: (name) => name === "flutter",
  },
  hex: {
    languages: /^(?:elixir|exs?)$/,
    programs: "mix",
    isExact: false,
    // The name of a module doesn't tell the package that it is in.
    imports: matchesNothing,
    isStandard: () => false,
  },
  swift: {
    languages: /^swift$/,
    programs: "swift",
    isExact: false,
    // The name of a module doesn't tell the package that it is in.
    imports: matchesNothing,
    isStandard: () => false,
  },
  brew: {
    languages: matchesNothing,
    programs: "brew",
    isExact: true,
    imports: matchesNothing,
    isStandard: () => false,
  },
  oci: {
    languages: matchesNothing,
    programs: "docker|podman|nerdctl",
    verb: /(?:^|\s)(?:run|pull|create)(?=\s)/,
    isExact: true,
    imports: matchesNothing,
    isStandard: () => false,
  },
} satisfies Record<string, Ecosystem>;

type EcosystemName = keyof typeof ecosystems;
const ecosystemEntries = Object.entries(ecosystems) as [EcosystemName, Ecosystem][];

/** Whether a package of an ecosystem is imported under its own name. */
export const isNameExact = ({ ecosystem }: Package): boolean => ecosystems[ecosystem].isExact;

/** A package by its address, as Deno and browsers import it: `npm:hollow@2`, `https://esm.sh/hollow@2`. */
const packageAddress = /^(?:https?:\/\/[^/]+\/(?:npm\/)?|npm:|jsr:)((?:@[\w.-]+\/)?[\w.-]+(?:@[\w.^~-]+)?)/;

/** The packages that a sample imports and that don't come with its language. */
export function importsOf(sample: CodeSample): Package[] {
  const { language, code } = sample;
  const entry = ecosystemEntries.find(([, { languages, grammar, imports }]) =>
    language === null
      ? grammar !== undefined && code.search(imports) >= 0 && isValidIn(grammar, code)
      : languages.test(language),
  );
  if (entry === undefined) return [];
  const [ecosystem, { imports, isStandard }] = entry;
  return [...code.matchAll(imports)].flatMap((match) => {
    const specifier = match[1]!;
    const [, hosted = ""] = packageAddress.exec(specifier) ?? [];
    if (hosted === "" && (isStandard(specifier) || /^\w+:/.test(specifier))) return [];
    return [toPackage(ecosystem, hosted || specifier)];
  });
}

/** `hollow@2.1`, `hollow==2.1`, `github.com/hollow/go/v2/widgets`, `@hollow/client/react`. */
function toPackage(ecosystem: EcosystemName, text: string, given?: string): Package {
  // In a Maven coordinate, all parts name the package. The version is given separately.
  if (ecosystem === "maven") return { ecosystem, name: text, major: majorOf(given) };
  const [, name = "", version = given] = /^(@?[^@=~<>^[:!]+)(?:\[[^\]]*\])?(?:[@=~<>^:!]+v?(.*))?$/.exec(text) ?? [];
  const inPath = ecosystem === "go" ? /\/v(\d+)(?=\/|$)/.exec(name)?.[1] : undefined;
  const parts = name
    .replace(/\/v\d+(?=\/|$)/, "")
    .split("/")
    .slice(0, maxNameParts(ecosystem, name));
  // A longer path may belong to another module below this package.
  const hasFirstPath = ecosystem === "go" && parts.join("/") === name;
  return { ecosystem, name: parts.join("/"), major: majorOf(inPath ?? version), ...(hasFirstPath && { hasFirstPath }) };
}

/** How many parts of a path name the package. Further parts are inside of it. */
function maxNameParts(ecosystem: EcosystemName, name: string): number {
  if (ecosystem === "npm") return name.startsWith("@") ? 2 : 1;
  return ecosystem === "go" ? 3 : Number.POSITIVE_INFINITY;
}

/** `^2.1`, `v3`, `~> 1.4`. */
function majorOf(version = ""): number | null {
  const major = /^[\^~>=v\s]*(\d+)/.exec(version)?.[1];
  return major === undefined ? null : Number(major);
}

const anyProgram = new RegExp(
  `(?:^|[\\s\`>(/;&|])(${ecosystemEntries.map(([, { programs }]) => programs).join("|")})[ \\t]([^\\n\`;&|#]*)`,
  "gm",
);
const usualVerb = /(?:^|\s)(?:install|i|add|get|require|dlx|x|exec|package)(?:\s+package)?(?=\s)/;

/** The packages that the text of a page installs: by commands, and in the files that list dependencies. */
export function installsOf(markdown: string): Package[] {
  const packages: Package[] = [];
  for (const [, program = "", rest = ""] of markdown.matchAll(anyProgram)) {
    const [ecosystem, { verb = usualVerb }] = ecosystemEntries.find(([, { programs }]) =>
      new RegExp(`^(?:${programs})$`).test(program),
    )!;
    const needsNoVerb = /^(?:npx|bunx|pipx|Install-Package)$/.test(program);
    const match = verb.exec(rest);
    if (!match && !needsNoVerb) continue;
    const words = rest.slice(match ? match.index + match[0].length : 0).split(/[\s"',]+/);
    const version = /--version[ =](\S+)/.exec(rest)?.[1];
    for (const word of words)
      if (/^@?[A-Za-z]/.test(word)) packages.push(toPackage(ecosystem, word.replace(/^(?:jsr|npm):/, ""), version));
  }
  for (const [ecosystem, pattern] of dependencyLists)
    for (const { groups, index } of markdown.matchAll(pattern)) {
      const { name = "", artifact, version, setting } = groups!;
      const isVersion = setting && wholeVersion.test(setting) && isDependency(setting, markdown, index);
      const given = isVersion ? setting : version;
      packages.push(toPackage(ecosystem, artifact === undefined ? name : `${name}:${artifact}`, given));
    }
  return packages;
}

/** A range of versions, and not a text that only begins like one, such as `30m` and `2026-10`. */
const wholeVersion = /^[\^~>=\s]*\d+(?:\.[\dx*]+)*(?:(?<=\.\d+)[-+][\w.+-]+)?(?:$|[\s,|])/;
const maxListChars = 4000;
const closedList = /\{[^{}]*\}/g;
const listBound = /(?:["']([\w.-]{1,80})["'][ \t]*:[ \t]*)?\{|^[ \t]*\[+([^\]\n]+)\]|^[ \t]*\}|^```/gm;

/**
 * Whether a list has the dependencies of a project where a setting is. Elsewhere, a setting may have the form of a dependency: `"retries": "3"`.
 * Without the list around it, a number of three parts is a version.
 */
function isDependency(setting: string, markdown: string, index: number): boolean {
  if (/^[\^~>=]/.test(setting)) return true;
  const before = markdown.slice(Math.max(0, index - maxListChars), index).replace(closedList, "");
  const [bound = "```", key, header] = [...before.matchAll(listBound)].at(-1) ?? [];
  return bound === "```" ? /^\d+\.\d+\.\d/.test(setting) : /dependenc|require|import/i.test(key ?? header ?? "");
}

/** Dependencies as the files of each ecosystem list them. */
const dependencyLists: [EcosystemName, RegExp][] = [
  // "hollow": "^2.1"
  ["npm", /"(?<name>@?[\w./-]+)":[ \t]*"(?<setting>[\^~>=\d*][^"]*|latest|workspace:[^"]*)"/g],
  // https://cdn.acme.dev/hollow@2.1
  ["npm", /\/\/[^\s"'()]{0,200}?\/(?<name>(?:@[\w.-]+\/)?[\w.-]+)@(?<version>\d[\w.]*)/g],
  // "acme/hollow": "^2.1"
  ["composer", /"(?<name>[\w.-]+\/[\w.-]+)":[ \t]*"(?<setting>[\^~>=\d*][^"]*)"/g],
  // hollow==2.1, in a line or in quotes
  ["pypi", /^[ \t]*(?<name>[A-Za-z][\w.-]*)(?:\[[\w,-]+\])?[ \t]*(?:[=~>]=)[ \t]*(?<version>\d[\w.]*)/gm],
  ["pypi", /^[ \t]*["'](?<name>[A-Za-z][\w.-]*)(?:\[[\w,-]+\])?[ \t]*(?:[=~>]=)[ \t]*(?<version>\d[\w.]*)/gm],
  // hollow = "2.1"
  ["cargo", /^[ \t]*(?<name>[a-z][\w-]*)[ \t]*=[ \t]*"(?<setting>[\^~>=]*\d[^"]*)"/gm],
  // hollow = { version = "2.1" }
  ["cargo", /^[ \t]*(?<name>[a-z][\w-]*)[ \t]*=[ \t]*\{[^}\n]*?version[ \t]*=[ \t]*"(?<version>[^"]*)"/gm],
  // hollow = "2.1" in a comment, which may say which version a sample is for
  [
    "cargo",
    /^[ \t]*(?:\/\/|#)(?:[^\n"=]*?[ \t])?[ \t]*(?<name>[a-z][\w-]*)[ \t]*=[ \t]*"[\^~>=]*(?<version>\d+\.\d[\d.]*)"/gm,
  ],
  // require github.com/acme/hollow v2.1.0
  ["go", /^[ \t]*(?:require[ \t]+)?(?<name>[\w-]+(?:\.[\w-]+)+\/\S+)[ \t]+v(?<version>\d[\w.-]*)/gm],
  // gem "hollow", "~> 2.1"
  ["gem", /\bgem[ \t(]+["'](?<name>[\w-]+)["'](?:,[ \t]*["'][~>= ]*(?<version>\d[\w.]*))?/g],
  // <groupId>dev.acme</groupId><artifactId>hollow</artifactId><version>2.1</version>
  [
    "maven",
    /<groupId>(?<name>[^<]+)<\/groupId>(?:\s*<artifactId>(?<artifact>[^<]+)<\/artifactId>(?:\s*<version>(?<version>\d[^<]*))?)?/g,
  ],
  // "dev.acme:hollow:2.1", or the same without quotes
  ["maven", /["'](?<name>[\w-]+(?:\.[\w-]+)+:[\w.-]+)(?::(?<version>\d[^"']*))?["']/g],
  ["maven", /(?<![\w."':/-])(?<name>[a-z][\w-]*(?:\.[\w-]+)+:[\w.-]+):(?<version>\d[\w.-]*)/g],
  // {:hollow, "~> 2.1"}
  ["hex", /\{:(?<name>[a-z]\w*),[ \t]*"[~>=\s]*(?<version>\d[\w.-]*)"/g],
  // image: acme/hollow:2.1
  ["oci", /^[ \t]*(?:-[ \t]+)?(?:image:|FROM)[ \t]+["']?(?<name>[\w./-]+):v?(?<version>\d[\w.-]*)/gm],
  // .package(url: "https://github.com/acme/hollow.git", from: "2.1.0")
  [
    "swift",
    /\.package\(\s*url:\s*"(?:https?:\/\/)?(?<name>[^"]+?)(?:\.git)?",[^"()]*(?:\([^"()]*)?"(?<version>\d[\w.-]*)"/g,
  ],
  // Include="Hollow" Version="2.1"
  ["nuget", /Include="(?<name>[\w.]+)"(?:[ \t]+Version="(?<version>\d[^"]*)")?/g],
  // hollow: ^2.1
  ["pub", /^[ \t]+(?<name>[a-z]\w*):[ \t]*[\^>=~]+(?<version>\d[\w.]*)/gm],
];

/** Whether an installed package is the one that a sample imports, as far as their names tell. */
export function provides(installed: Package, imported: Package): boolean {
  if (installed.ecosystem !== imported.ecosystem) return false;
  const normalize = (name: string) => name.replaceAll("-", "_").toLowerCase();
  const [a, b] = [normalize(installed.name), normalize(imported.name)];
  if (imported.ecosystem === "go") return a === b || a.startsWith(`${b}/`) || b.startsWith(`${a}/`);
  return isNameExact(imported) ? a === b : isRelated(a, b);
}

/** Shorter names may be alike by chance. */
const minMisspelledChars = 8;
const maxMisspelledChars = 2;
/** No package of npm has a longer name. */
const maxNameChars = 214;

/** Whether one of two different names may be a misspelling of the other. A name with a version at its end is another name, not a misspelling. */
export function isMisspelled(a: string, b: string): boolean {
  const letters = (name: string) => name.replace(/\d+/g, "");
  const [shorter, longer] = [a.length, b.length].sort((x, y) => x - y) as [number, number];
  if (shorter < minMisspelledChars || longer > maxNameChars || longer - shorter > maxMisspelledChars) return false;
  if (letters(a) === letters(b)) return false;
  return editDistance(a, b) <= maxMisspelledChars;
}

/** Whether one of two names is the other with two letters in the wrong order. */
export function isTransposed(a: string, b: string): boolean {
  const at = [...a].findIndex((char, index) => char !== b[index]);
  if (at < 0 || Math.min(a.length, b.length) < minMisspelledChars || /\d/.test(a.slice(at, at + 2))) return false;
  return a.slice(0, at) + a.charAt(at + 1) + a.charAt(at) + a.slice(at + 2) === b;
}

/** How many characters have to be inserted, deleted or replaced to turn one text into another. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, char] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++)
      next.push(Math.min(next[j]! + 1, row[j + 1]! + 1, row[j]! + Number(char !== b[j])));
    row = next;
  }
  return row[b.length]!;
}

/** Whether one of two names has one word more than the other. */
export function hasOneWordMore(a: string, b: string): boolean {
  if (Math.max(a.length, b.length) > maxNameChars) return false;
  const [shorter = [], longer = []] = [a, b]
    .map((name) => name.split(/[^\p{L}\d]+/u))
    .sort((x, y) => x.length - y.length);
  return longer.some((_, index) => longer.toSpliced(index, 1).join(" ") === shorter.join(" "));
}

/** Imports of single names in JavaScript: `import { a, b as c } from "hollow"`, `const { a } = require("hollow")`. */
const namedImports = /\{([^{}]*)\}\s*(?:from|=\s*(?:await\s+import|require)\()\s*["']([^"'\s]+)["']/g;

/** The names that samples import from each package of npm. */
export function importedNamesOf(samples: CodeSample[]): Map<string, Set<string>> {
  const namesOf = new Map<string, Set<string>>();
  for (const { code } of samples)
    for (const [, list = "", specifier = ""] of code.matchAll(namedImports)) {
      const { name } = toPackage("npm", specifier);
      const imported = list.split(",").map((each) => each.trim().split(/[\s:]/)[0]!);
      namesOf.set(name, new Set([...(namesOf.get(name) ?? []), ...imported.filter((each) => each !== "")]));
    }
  return namesOf;
}

/** Whether two names share a word, or one contains the other: `python-hollow` and `hollow`, `PyYAML` and `yaml`. */
export function isRelated(a: string, b: string): boolean {
  const wordsOf = (name: string) =>
    name
      .replace(/([a-z\d])([A-Z])/g, "$1 $2")
      .toLowerCase()
      .split(/[^\p{L}\d]+/u)
      .filter((word) => word.length >= 3);
  const squash = (name: string) => name.toLowerCase().replace(/[^\p{L}\d]/gu, "");
  const [x, y] = [squash(a), squash(b)];
  const words = new Set(wordsOf(a));
  return (
    wordsOf(b).some((word) => words.has(word)) ||
    (Math.min(x.length, y.length) >= 3 && (x.includes(y) || y.includes(x)))
  );
}
