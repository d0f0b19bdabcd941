/** Packs the folder of a built docs site, for the GitHub Action and the command line. It needs Node.js 18 and no packages. */
import { readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { gzipSync } from "node:zlib";

/** Files whose content agents read. Of others, such as images, only the names are packed: links to them work. */
const textExtensions = new Set(".html .htm .md .mdx .txt .xml .json .yaml .yml .toml .js .mjs .css .svg".split(" "));
/** Files without an extension that have rules for the host. */
const ruleFiles = new Set(["_redirects", "_headers", "CNAME", ".nojekyll"]);
/** Scripts that only draw a page are of no use to agents, and bundles are large. */
const maxScriptBytes = 64 * 1024;
const maxFiles = 20_000;
const blockBytes = 512;

/**
 * The paths of all files of a folder, relative to it, sorted. Hidden files, and links that lead out of the folder, are left out. Throws for too
 * many files.
 * @param {string} folder
 */
export function listSiteFiles(folder) {
  const root = realpathSync(folder);
  /** @type {string[]} */
  const paths = [];
  /** @param {string} path */
  const visit = (path) => {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const isHidden = entry.name.startsWith(".") && entry.name !== ".well-known" && !ruleFiles.has(entry.name);
      if (isHidden || entry.name === "node_modules") continue;
      const full = join(path, entry.name);
      if (entry.isDirectory()) visit(full);
      else if (entry.isFile() || (entry.isSymbolicLink() && leadsToFileInside(root, full)))
        paths.push(relative(root, full).split(sep).join("/"));
      if (paths.length > maxFiles)
        throw new Error(`${folder} has more than ${maxFiles} files. Pass the folder of the built docs only.`);
    }
  };
  visit(root);
  return paths.sort();
}

/** @param {string} root @param {string} path */
function leadsToFileInside(root, path) {
  try {
    const target = realpathSync(path);
    return target.startsWith(root + sep) && statSync(target).isFile();
  } catch {
    return false;
  }
}

/**
 * A tar.gz of files of a folder, with fixed times and owners: the same files make the same archive.
 * @param {string} folder @param {string[]} paths
 */
export const packSiteFiles = (folder, paths) => packFiles(paths.map((path) => [path, contentOf(folder, path)]));

/**
 * A tar.gz of files, each a path with its content, with fixed times and owners: the same files make the same archive.
 * @param {[path: string, content: Buffer | string][]} files
 */
export function packFiles(files) {
  const parts = files.flatMap(([path, content]) => {
    // A path that does not fit into a header is named by an extended one before it.
    const record = Buffer.byteLength(path) > 100 ? toPaxRecord(path) : null;
    return [
      ...(record ? toEntry("PaxHeader", record, "x") : []),
      ...toEntry(record ? `long-${Buffer.byteLength(path)}` : path, Buffer.from(content), "0"),
    ];
  });
  return gzipSync(Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)]), { level: 9 });
}

/** @param {string} folder @param {string} path */
function contentOf(folder, path) {
  if (!textExtensions.has(extname(path).toLowerCase()) && !ruleFiles.has(path)) return Buffer.alloc(0);
  const content = readFileSync(join(folder, path));
  return /\.m?js$/i.test(path) && content.length > maxScriptBytes ? Buffer.alloc(0) : content;
}

/** The record of a path in an extended header: its own length in bytes, the name and the value. @param {string} path */
function toPaxRecord(path) {
  const rest = ` path=${path}\n`;
  const restBytes = Buffer.byteLength(rest);
  let length = restBytes + 1;
  while (String(length).length + restBytes !== length) length = String(length).length + restBytes;
  return Buffer.from(`${length}${rest}`);
}

/** A header in the format of POSIX.1-1988 (ustar), and the content in whole blocks. @param {string} name @param {Buffer} content @param {string} type */
function toEntry(name, content, type) {
  const header = Buffer.alloc(blockBytes);
  /** @param {number} value @param {number} digits */
  const octal = (value, digits) => `${value.toString(8).padStart(digits, "0")}\0`;
  header.write(name, 0);
  header.write(octal(0o644, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  header.write(octal(content.length, 11), 124);
  header.write(octal(0, 11), 136);
  header.write(" ".repeat(8), 148);
  header.write(type, 156);
  header.write("ustar\x0000", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return [header, content, Buffer.alloc((blockBytes - (content.length % blockBytes)) % blockBytes)];
}
