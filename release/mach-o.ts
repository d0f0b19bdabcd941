import { createHash } from "node:crypto";

// Code signatures of macOS executables: TN2206 and xnu's osfmk/kern/cs_blobs.h. macOS ends a program at the first page whose digest is wrong.

const magic64 = 0xfeedfacf;
const segment64 = 0x19;
const codeSignature = 0x1d;
const superBlob = 0xfade0cc0;
const codeDirectory = 0xfade0c02;
/** Version 2.4 of a code directory: with the range of the program's own segment. */
const directoryVersion = 0x20400;
const directoryHeaderBytes = 88;
/** Ad hoc, and made by a linker: the signature consists of the code directory alone. */
const adHocLinkerSigned = 0x20002;
const mainBinary = 1;
const sha256 = 2;
const pageBits = 12;
const pageBytes = 1 << pageBits;

type Segment = { at: number; offset: number; bytes: number };
type Layout = { text: Segment; linkEdit: Segment; signature: { at: number; offset: number; bytes: number } };

/** Where the parts are that a signature covers or changes. `at`: the offset of the load command. Throws for another format. */
function layoutOf(view: DataView): Layout {
  if (view.getUint32(0, true) !== magic64) throw new Error("not a 64-bit Mach-O file");
  const found: Partial<Layout> = {};
  let at = 32;
  for (let i = 0; i < view.getUint32(16, true); i++) {
    const command = view.getUint32(at, true);
    if (command === segment64) {
      const name = String.fromCharCode(...new Uint8Array(view.buffer, view.byteOffset + at + 8, 16)).replaceAll(
        "\0",
        "",
      );
      const segment = { at, offset: number(view, at + 40), bytes: number(view, at + 48) };
      if (name === "__TEXT") found.text = segment;
      if (name === "__LINKEDIT") found.linkEdit = segment;
    }
    if (command === codeSignature)
      found.signature = { at, offset: view.getUint32(at + 8, true), bytes: view.getUint32(at + 12, true) };
    at += view.getUint32(at + 4, true);
  }
  const { text, linkEdit, signature } = found;
  if (!text || !linkEdit || !signature) throw new Error("the Mach-O file has no place for a signature");
  return { text, linkEdit, signature };
}

const number = (view: DataView, at: number): number => Number(view.getBigUint64(at, true));
const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const roundUp = (value: number, unit: number): number => Math.ceil(value / unit) * unit;

/** Digests of each page of the program, up to its signature. */
const pageDigests = (program: Uint8Array): Buffer[] =>
  Array.from({ length: Math.ceil(program.length / pageBytes) }, (_, page) =>
    createHash("sha256")
      .update(program.subarray(page << pageBits, (page + 1) << pageBits))
      .digest(),
  );

/** Replaces the signature of a macOS executable by an ad hoc one, which covers every page. */
export function signMachO(executable: Uint8Array, identifier: string): Uint8Array {
  const { text, linkEdit, signature } = layoutOf(viewOf(executable));
  if (signature.offset % 16 !== 0 || signature.offset < linkEdit.offset)
    throw new Error("the signature of the Mach-O file is not at its end");
  const name = Buffer.from(`${identifier}\0`);
  const pages = Math.ceil(signature.offset / pageBytes);
  const digestsAt = directoryHeaderBytes + name.length;
  const directoryBytes = digestsAt + pages * 32;
  const signatureBytes = roundUp(20 + directoryBytes, 16);

  const signed = new Uint8Array(signature.offset + signatureBytes);
  signed.set(executable.subarray(0, signature.offset));
  const view = viewOf(signed);
  view.setUint32(signature.at + 12, signatureBytes, true);
  const linkEditBytes = signed.length - linkEdit.offset;
  view.setBigUint64(linkEdit.at + 32, BigInt(roundUp(linkEditBytes, 0x4000)), true);
  view.setBigUint64(linkEdit.at + 48, BigInt(linkEditBytes), true);

  const write = (at: number, values: number[]) => {
    for (const [i, value] of values.entries()) view.setUint32(signature.offset + at + 4 * i, value);
  };
  write(0, [superBlob, 20 + directoryBytes, 1, 0, 20]);
  write(20, [codeDirectory, directoryBytes, directoryVersion, adHocLinkerSigned]);
  write(36, [digestsAt, directoryHeaderBytes, 0, pages, signature.offset]);
  signed.set([32, sha256, 0, pageBits], signature.offset + 56);
  // Four fields that stay 0, then the range and kind of the program's own segment.
  view.setBigUint64(signature.offset + 84, BigInt(text.offset));
  view.setBigUint64(signature.offset + 92, BigInt(text.bytes));
  view.setBigUint64(signature.offset + 100, BigInt(mainBinary));
  signed.set(name, signature.offset + 20 + directoryHeaderBytes);
  const digests = pageDigests(signed.subarray(0, signature.offset));
  signed.set(Buffer.concat(digests), signature.offset + 20 + digestsAt);
  return signed;
}

/** What a signature states, and how many of its page digests are wrong. Throws if there is none, or it doesn't cover the whole program. */
export function checkMachO(executable: Uint8Array): {
  identifier: string;
  flags: number;
  pages: number;
  wrong: number;
} {
  const { linkEdit, signature } = layoutOf(viewOf(executable));
  if (signature.offset + signature.bytes !== executable.length)
    throw new Error("the signature is not at the end of the file");
  if (linkEdit.offset + linkEdit.bytes !== executable.length) throw new Error("__LINKEDIT doesn't end with the file");
  const view = viewOf(executable.subarray(signature.offset));
  const entries = Array.from({ length: view.getUint32(8) }, (_, i) => view.getUint32(16 + 8 * i));
  const at = entries.find((offset) => view.getUint32(offset) === codeDirectory);
  if (at === undefined) throw new Error("the signature has no code directory");
  if (view.getUint32(at + 32) !== signature.offset) throw new Error("the signature doesn't cover the whole program");
  const bytes = Buffer.from(executable.buffer, executable.byteOffset + signature.offset + at);
  const identifierAt = view.getUint32(at + 20);
  const identifier = bytes.subarray(identifierAt, bytes.indexOf(0, identifierAt)).toString();
  const digestsAt = view.getUint32(at + 16);
  const digests = pageDigests(executable.subarray(0, signature.offset));
  if (view.getUint8(at + 39) !== pageBits || view.getUint32(at + 28) !== digests.length)
    throw new Error("the signature has other pages");
  const wrong = digests.filter((digest, page) => {
    const stated = bytes.subarray(digestsAt + 32 * page, digestsAt + 32 * (page + 1));
    return !digest.equals(stated);
  });
  return { identifier, flags: view.getUint32(at + 12), pages: digests.length, wrong: wrong.length };
}
