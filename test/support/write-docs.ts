// `bun run docs`: writes the generated tables of the docs pages.

import { join } from "node:path";
import { toTools } from "../../src/mcp-endpoints.ts";
import { testApp } from "./app.ts";
import { toStoredExample } from "./example-report.ts";
import { writeFindings } from "./explorer-findings.ts";
import {
  auditTable,
  causesTable,
  checksTable,
  commandsTable,
  docFile,
  endingsTable,
  failuresTable,
  settingsTable,
  toolsTable,
  unitBlock,
  withPart,
} from "./generated.ts";

const write = async (file: string, name: string, part: string) =>
  Bun.write(docFile(file), withPart(await Bun.file(docFile(file)).text(), name, part));

await write("configuration.md", "settings", settingsTable());
await write("audit.md", "actions", auditTable());
await write("agents.md", "endings", endingsTable());
await write("failures.md", "failures", failuresTable());
await write("doctor.md", "checks", checksTable());
await write("doctor.md", "causes", causesTable());
await write("operations.md", "unit", unitBlock("evald.service"));
await write("growing.md", "unit", unitBlock("evald-worker.service"));
await write("cli.md", "commands", commandsTable());
await write("mcp.md", "tools", toolsTable(toTools(testApp().service.ctx)));
await writeFindings();
const example = await toStoredExample();
if (example !== null) await Bun.write(join(import.meta.dir, "../../src/web/example/report.json"), example);
