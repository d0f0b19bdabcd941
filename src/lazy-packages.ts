import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isCompiled } from "./build.ts";

// These packages load slowly and few requests need them, so the first use of each loads it. `import()` would make the functions that use them
// asynchronous. Loading them at the start, with the schemas of the AI SDK, took 33 of its 99 ms, and 11 MB of memory.

export const loadJose = (): typeof import("jose") => require("jose");
export const loadEventSource = (): typeof import("eventsource-parser/stream") => require("eventsource-parser/stream");
export const loadPrices = (): typeof import("@pydantic/genai-prices") => require("@pydantic/genai-prices");
export const loadPromClient = (): typeof import("prom-client") => require("prom-client");
export const loadRedirectParser = (): typeof import("@netlify/redirect-parser") => require("@netlify/redirect-parser");
export const loadTar = (): typeof import("tar") => require("tar");
export const loadQrCodes = (): typeof import("uqr") => require("uqr");
export const loadTransliteration = (): typeof import("transliteration") => require("transliteration");

/** Files of packages that `release/compile.ts` compresses for the executable, which is 1 MB smaller without the originals. */
export const packageFiles = ["jq-wasm/jq.wasm", "unhomoglyph/data.json"] as const;
type PackageFile = (typeof packageFiles)[number];

export const compressedName = (file: PackageFile): string => `${file.replace("/", "-")}.zst`;

export const readPackageFile = (file: PackageFile): Buffer =>
  isCompiled
    ? Bun.zstdDecompressSync(readFileSync(join(import.meta.dir, "package-files", compressedName(file))))
    : readFileSync(Bun.resolveSync(file, import.meta.dir));
