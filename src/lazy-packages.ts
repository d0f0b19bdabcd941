// Packages that the service needs for few requests and that are slow to load: each is loaded by its first use. `import()` would make the
// functions that use them asynchronous. On a busy core, they and the schemas of the AI SDK were 25 of the 100 ms that the service took to start.

export const loadJose = (): typeof import("jose") => require("jose");
export const loadOpenApiPlugin = (): typeof import("@elysiajs/openapi") => require("@elysiajs/openapi");
export const loadPrices = (): typeof import("@pydantic/genai-prices") => require("@pydantic/genai-prices");
export const loadPromClient = (): typeof import("prom-client") => require("prom-client");
export const loadTar = (): typeof import("tar") => require("tar");
export const loadTransliteration = (): typeof import("transliteration") => require("transliteration");
