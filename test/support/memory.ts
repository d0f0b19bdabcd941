import { closeSync, openSync, readFileSync, readSync } from "node:fs";

const pageBytes = 4096;
const entryBytes = 8;
/** Longer runs of pages are read in parts, which overlap so that no text is cut. */
const partPages = 4096;
const overlap = 16;

const fileOf = (pid: number, name: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "latin1");
  } catch {
    return "";
  }
};

/** A process and all processes that it started. */
export const treeOf = (pid: number): number[] => [
  pid,
  ...fileOf(pid, `task/${pid}/children`)
    .split(" ")
    .filter(Boolean)
    .flatMap((child) => treeOf(Number(child))),
];

export const environmentOf = (pid: number): string => fileOf(pid, "environ") + fileOf(pid, "cmdline");

/** The pages of a mapping with content, as ranges of page numbers. */
function* presentPages(pagemap: number, from: number, to: number): Generator<[from: number, to: number]> {
  let begun = -1;
  for (let page = from; page < to; page += partPages) {
    const entries = Buffer.alloc(Math.min(partPages, to - page) * entryBytes);
    const read = readSync(pagemap, entries, 0, entries.length, page * entryBytes) / entryBytes;
    for (let i = 0; i < read; i++) {
      // Bit 63 means in memory, and bit 62 means swapped out.
      const isThere = ((entries[i * entryBytes + 7] ?? 0) & 0xc0) !== 0;
      if (isThere && begun < 0) begun = page + i;
      if (begun >= 0 && (!isThere || page + i - begun >= partPages)) {
        yield [begun, page + i];
        begun = isThere ? page + i - overlap : -1;
      }
    }
  }
  if (begun >= 0) yield [begun, to];
}

/** Calls `onPart` with all memory of a process that it wrote to or read, without a copy on disk. Requires root. Returns the bytes. */
function readMemory(pid: number, onPart: (part: Buffer) => void): number {
  const [memory, pagemap] = [openSync(`/proc/${pid}/mem`, "r"), openSync(`/proc/${pid}/pagemap`, "r")];
  let bytes = 0;
  try {
    for (const line of fileOf(pid, "maps").split("\n")) {
      const [, from = "", to = "", rest = ""] = /^([0-9a-f]+)-([0-9a-f]+) (.*)$/.exec(line) ?? [];
      if (!rest.startsWith("r") || rest.endsWith("[vvar]") || rest.endsWith("[vsyscall]")) continue;
      const pages = [from, to].map((address) => Number.parseInt(address, 16) / pageBytes) as [number, number];
      for (const [first, last] of presentPages(pagemap, ...pages)) {
        const part = Buffer.alloc((last - first) * pageBytes);
        try {
          bytes += readSync(memory, part, 0, part.length, first * pageBytes);
        } catch {
          // The mapping was freed in the meantime.
        }
        onPart(part);
      }
    }
  } finally {
    closeSync(memory);
    closeSync(pagemap);
  }
  return bytes;
}

/** The texts in a process's memory, in UTF-8 or UTF-16, and the number of searched bytes. The process is stopped meanwhile. */
export function findInMemory(pid: number, texts: string[]): { found: string[]; bytes: number } {
  const found = new Set<string>();
  process.kill(pid, "SIGSTOP");
  try {
    const bytes = readMemory(pid, (part) => {
      for (const text of texts)
        if (!found.has(text) && (part.includes(text) || part.includes(text, 0, "utf16le"))) found.add(text);
    });
    return { found: [...found], bytes };
  } finally {
    process.kill(pid, "SIGCONT");
  }
}
