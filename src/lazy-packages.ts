// Packages that few requests need and that are slow to load: the first use of each loads it. `import()` would make the functions that use
// them asynchronous. Loading these at the start, with the schemas of the AI SDK, took 33 of its 99 ms, and 11 MB of memory.

export const loadJose = (): typeof import("jose") => require("jose");
// The function of the package compiles a regular expression of 6,000 characters, which takes 50 ms.
export const loadLookAlikes = (): Record<string, string> => require("unhomoglyph/data.json");
export const loadEventSource = (): typeof import("eventsource-parser/stream") => require("eventsource-parser/stream");
export const loadPrices = (): typeof import("@pydantic/genai-prices") => require("@pydantic/genai-prices");
export const loadPromClient = (): typeof import("prom-client") => require("prom-client");
export const loadRedirectParser = (): typeof import("@netlify/redirect-parser") => require("@netlify/redirect-parser");
export const loadTar = (): typeof import("tar") => require("tar");
export const loadQrCodes = (): typeof import("uqr") => require("uqr");
export const loadTransliteration = (): typeof import("transliteration") => require("transliteration");
