import { createHash } from "node:crypto";
import { closeSync, openSync, readSync } from "node:fs";
import type { TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { parseJson } from "../body.ts";
import { AppError, badRequest } from "../errors.ts";
import { explain } from "../schema.ts";
import { formatVersion, type RowType, rowTypes, schemaOf, words } from "./rows.ts";

const maxLineBytes = 8 * 1024 * 1024;

type Row = Record<string, unknown> & { id: string };
export type Line = { n: number; type: RowType; row: Row; bytes: number };

const checks = new Map<RowType, TypeCheck<TSchema>>();
function checkOf(type: RowType): TypeCheck<TSchema> {
  const made = checks.get(type) ?? TypeCompiler.Compile(schemaOf(type));
  checks.set(type, made);
  return made;
}

/** The rows of a file one by one, each as its schema has it. Throws bad_request where it is no export, is damaged or was cut off. */
export function* linesOf(file: string): Generator<Line> {
  const hash = createHash("sha256");
  let rows = 0;
  let ended = false;
  let n = 0;
  for (const { text, isWhole } of textLinesOf(file)) {
    n++;
    const bad = (why: string) => badRequest(`line ${n}: ${why}`);
    if (ended) throw bad("something stands after the end of the export; export it again");
    if (!isWhole) throw bad("the file is cut off here; copy it again, or export it again");
    if (n === 1) {
      checkHeader(text);
      continue;
    }
    const value = parse(text, n);
    const { type, row, ...rest } = value;
    if (type === "end") {
      if (rest.rows !== rows || rest.sha256 !== hash.digest("hex"))
        throw bad(`the ${rows} rows before it are not those that were exported; the file is damaged, export it again`);
      ended = true;
      continue;
    }
    const known = rowTypes.find((each) => each === type);
    if (!known)
      throw bad(
        `${JSON.stringify(type ?? null).slice(0, 100)} is no kind of row; the file is damaged, export it again`,
      );
    const check = checkOf(known);
    const wrong = check.Check(row) ? null : check.Errors(row).First();
    if (wrong) throw bad(`${words(known)}: ${explain(wrong, "the row")}`);
    hash.update(`${text}\n`);
    rows++;
    yield { n, type: known, row: row as Row, bytes: text.length };
  }
  if (!ended) throw badRequest(`line ${n + 1}: the file is cut off here; copy it again, or export it again`);
}

function parse(text: string, n: number): Record<string, unknown> {
  try {
    return (parseJson(text, "it") ?? {}) as Record<string, unknown>;
  } catch (error) {
    const why = error instanceof AppError ? error.detail : "it must not be nested so deep";
    throw badRequest(`line ${n}: ${why}; the file is damaged, export it again`);
  }
}

const foreign = () =>
  badRequest("line 1: this is no export of evald; name a file that evald export wrote, unpacked if it was packed");

function checkHeader(text: string): void {
  let header: unknown;
  try {
    header = parseJson(text, "it");
  } catch {
    throw foreign();
  }
  const { type, version, evald } = (header ?? {}) as Record<string, unknown>;
  if (type !== "evald export" || !Number.isInteger(version)) throw foreign();
  if (Number(version) > formatVersion)
    throw badRequest(
      `line 1: the file is of format ${version}, written by evald ${String(evald).slice(0, 40)}, and this one reads up to ${formatVersion}; import it with that version`,
    );
}

/** The lines of a file, a bounded piece of it at a time. `isWhole`: the line had its end. Throws bad_request for one that is too long or no UTF-8. */
function* textLinesOf(file: string): Generator<{ text: string; isWhole: boolean }> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const piece = Buffer.alloc(256 * 1024);
  const opened = readPiece(file, () => openSync(file, "r"));
  let begun: Buffer[] = [];
  let length = 0;
  let n = 1;
  const decode = (bytes: Buffer) => {
    try {
      return decoder.decode(bytes);
    } catch {
      throw n === 1 ? foreign() : badRequest(`line ${n}: it is no UTF-8; the file is damaged, export it again`);
    }
  };
  try {
    for (;;) {
      const read = readPiece(file, () => readSync(opened, piece));
      if (read === 0) break;
      let from = 0;
      for (let at = piece.indexOf(10); at >= 0 && at < read; at = piece.indexOf(10, from)) {
        yield { text: decode(Buffer.concat([...begun, piece.subarray(from, at)])), isWhole: true };
        from = at + 1;
        begun = [];
        length = 0;
        n++;
      }
      begun.push(Buffer.from(piece.subarray(from, read)));
      length += read - from;
      if (length > maxLineBytes)
        throw badRequest(
          `line ${n}: it is longer than ${maxLineBytes / 1024 / 1024} MiB; the file is damaged, export it again`,
        );
    }
    if (length > 0) yield { text: Buffer.concat(begun).toString(), isWhole: false };
  } finally {
    closeSync(opened);
  }
}

function readPiece(file: string, read: () => number): number {
  try {
    return read();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw badRequest(`${file} cannot be read (${why}); name a file that evald export wrote`);
  }
}
