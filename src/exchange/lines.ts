import { createHash } from "node:crypto";
import { closeSync, openSync, readSync } from "node:fs";
import { type TSchema, Type } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { Value } from "@sinclair/typebox/value";
import { AppError, badRequest, reasonOf } from "../errors.ts";
import { parseJson } from "../http/body.ts";
import { invalidInput, Nullable } from "../schema.ts";
import { formatVersion, labelOf, type RowType, rowTypes, schemaOf } from "./rows.ts";
import type { Checksum, Signature } from "./signature.ts";

const maxLineBytes = 8 * 1024 * 1024;

type Row = Record<string, unknown> & { id: string };
/** The content of the first line. `timeZone`: the time zone of the schedules; null: unknown. `omitted`: what is not in the file, in words. */
export type Header = { timeZone: string | null; omitted: string[] };
/** A row in a line of an export. `bytes`: the length of the line. Nearly every character is one byte. */
export type Line = { lineNumber: number; type: RowType; row: Row; bytes: number };

const checks = new Map<RowType, TypeCheck<TSchema>>();
function checkOf(type: RowType): TypeCheck<TSchema> {
  const check = checks.get(type) ?? TypeCompiler.Compile(schemaOf(type));
  checks.set(type, check);
  return check;
}

/** Reads the first line of a file. Throws bad_request if it isn't the first line of an export. */
export function readHeader(file: string): Header {
  const [first] = textLinesOf(file).take(1);
  // If the file is truncated here, reading its rows says so.
  return first?.isWhole ? checkHeader(first.text) : { timeZone: null, omitted: [] };
}

/** The first and last line of an export. `signature` null: it isn't signed. */
export type Envelope = { header: string; checksum: Checksum; signature: Signature | null };

/**
 * Yields the rows of a file, each validated against its schema. Returns the first and last line. Throws bad_request for a file that is not an export,
 * damaged or truncated.
 */
export function* linesOf(file: string): Generator<Line, Envelope> {
  const hash = createHash("sha256");
  let rows = 0;
  let header = "";
  let envelope: Envelope | null = null;
  let lineNumber = 0;
  for (const { text, isWhole } of textLinesOf(file)) {
    lineNumber++;
    const invalidLine = (reason: string) => badRequest(`Line ${lineNumber}: ${reason}`);
    if (envelope) throw invalidLine("there is data after the end of the export. Export it again.");
    if (!isWhole) throw invalidLine("the file is truncated here. Copy it again, or export it again.");
    if (lineNumber === 1) {
      checkHeader(text);
      header = text;
      continue;
    }
    const { type, row, ...rest } = parse(text, lineNumber);
    if (type === "end") {
      const checksum = { rows, sha256: hash.digest("hex") };
      if (rest.rows !== rows || rest.sha256 !== checksum.sha256)
        throw invalidLine(
          `the checksum of the ${rows} rows above does not match. The file is damaged; export it again.`,
        );
      const { publicKey, signature } = rest;
      const isSigned = publicKey !== undefined || signature !== undefined;
      envelope = {
        header,
        checksum,
        signature: isSigned ? { publicKey: String(publicKey), signature: String(signature) } : null,
      };
      continue;
    }
    const rowType = rowTypes.find((each) => each === type);
    if (!rowType)
      throw invalidLine(
        `${JSON.stringify(type ?? null).slice(0, 100)} is not a known row type. The file is damaged; export it again.`,
      );
    const check = checkOf(rowType);
    const fault = check.Check(row) ? null : check.Errors(row).First();
    if (fault) throw invalidLine(`${labelOf(rowType)}: ${invalidInput(fault, "row").detail}`);
    hash.update(`${text}\n`);
    rows++;
    yield { lineNumber, type: rowType, row: row as Row, bytes: text.length };
  }
  if (!envelope)
    throw badRequest(`Line ${lineNumber + 1}: the file is truncated here. Copy it again, or export it again.`);
  return envelope;
}

function parse(text: string, lineNumber: number): Record<string, unknown> {
  try {
    return (parseJson(text, "JSON") ?? {}) as Record<string, unknown>;
  } catch (error) {
    const reason = error instanceof AppError ? error.detail : "the JSON is nested too deeply.";
    throw badRequest(`Line ${lineNumber}: ${reason} The file is damaged; export it again.`);
  }
}

const HeaderFields = Type.Object({
  timeZone: Nullable(Type.String({ maxLength: 100 })),
  omitted: Type.Array(Type.String({ maxLength: 100 }), { maxItems: 100 }),
});

const notAnExport = () =>
  badRequest("Line 1: this is not an evald export. Pass a file created by evald export, uncompressed.");

function checkHeader(text: string): Header {
  let header: unknown;
  try {
    header = parseJson(text, "JSON");
  } catch {
    throw notAnExport();
  }
  const { type, version, evald, timeZone = null, omitted = [] } = (header ?? {}) as Record<string, unknown>;
  if (type !== "evald export" || !Number.isInteger(version)) throw notAnExport();
  if (Number(version) > formatVersion)
    throw badRequest(
      `Line 1: the file has format ${version}, written by evald ${String(evald).slice(0, 40)}, but this version reads formats up to ${formatVersion}. Import it with that version.`,
    );
  if (!Value.Check(HeaderFields, { timeZone, omitted })) throw notAnExport();
  return { timeZone, omitted } as Header;
}

/** Yields the lines of a file, read in chunks. `isWhole`: the line ends with a newline. Throws bad_request for a line that is too long or not UTF-8. */
function* textLinesOf(file: string): Generator<{ text: string; isWhole: boolean }> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const chunk = Buffer.alloc(256 * 1024);
  const descriptor = withReadErrors(file, () => openSync(file, "r"));
  let partial = Buffer.alloc(0);
  let lineNumber = 1;
  const decode = (bytes: Buffer) => {
    try {
      return decoder.decode(bytes);
    } catch {
      throw lineNumber === 1
        ? notAnExport()
        : badRequest(`Line ${lineNumber}: the line is not valid UTF-8. The file is damaged; export it again.`);
    }
  };
  try {
    for (;;) {
      const read = withReadErrors(file, () => readSync(descriptor, chunk));
      if (read === 0) break;
      let from = 0;
      for (let newline = chunk.indexOf("\n"); newline >= 0 && newline < read; newline = chunk.indexOf("\n", from)) {
        yield { text: decode(Buffer.concat([partial, chunk.subarray(from, newline)])), isWhole: true };
        from = newline + 1;
        partial = Buffer.alloc(0);
        lineNumber++;
      }
      partial = Buffer.concat([partial, chunk.subarray(from, read)]);
      if (partial.length > maxLineBytes)
        throw badRequest(
          `Line ${lineNumber}: the line is longer than ${maxLineBytes / 1024 / 1024} MiB. The file is damaged; export it again.`,
        );
    }
    if (partial.length > 0) yield { text: partial.toString(), isWhole: false };
  } finally {
    closeSync(descriptor);
  }
}

function withReadErrors(file: string, read: () => number): number {
  try {
    return read();
  } catch (error) {
    throw badRequest(`${file} cannot be read (${reasonOf(error)}). Pass a file created by evald export.`);
  }
}
