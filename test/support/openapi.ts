import { join } from "node:path";
import { testApp } from "./app.ts";

export const openApiFile = join(import.meta.dir, "..", "..", "openapi.json");

/** The API description that a service serves. */
export async function servedOpenApi() {
  const service = testApp({ env: { EVALD_BASE_URL: "https://evals.acme.dev" } });
  return (await service.send("GET", "/openapi.json", { headers: { authorization: "" } })).body;
}

if (import.meta.main) {
  await Bun.write(openApiFile, `${JSON.stringify(await servedOpenApi(), null, 1)}\n`);
  process.exit();
}
