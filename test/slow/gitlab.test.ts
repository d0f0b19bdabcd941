import { expect, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { emptyFolder } from "../support/executable.ts";

type Note = { id: number; body: string };
const ci = await Bun.file(join(import.meta.dir, "../../src/web/docs/ci.md")).text();
const [, yaml = ""] = /^## GitLab CI$[\s\S]*?^```yaml\n([\s\S]*?)^```$/m.exec(ci) ?? [];
const { docs: job } = Bun.YAML.parse(yaml) as { docs: { script: string[] } };

/** The notes of a merge request, with the routes of GitLab that the job uses. */
function gitlab(notes: Note[]) {
  const calls: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      if (request.headers.get("private-token") !== "glpat-1") return new Response("", { status: 401 });
      const [, id] = /^\/api\/v4\/projects\/7\/merge_requests\/3\/notes(?:\/(\d+))?$/.exec(pathname) ?? [];
      if (request.method === "GET") {
        const page = Number(searchParams.get("page"));
        return Response.json(notes.slice((page - 1) * 100, page * 100));
      }
      const body = String((await request.formData()).get("body"));
      calls.push(`${request.method} ${id ?? ""}`.trim());
      if (request.method === "POST") notes.push({ id: notes.length + 1, body });
      else for (const note of notes) if (note.id === Number(id)) note.body = body;
      return Response.json({});
    },
  });
  return { notes, calls, server };
}

/** Runs the documented job with an evald that writes this file and has this exit code. */
async function runJob(server: { url: URL }, { markdown, code }: { markdown: string | null; code: number }) {
  const cwd = emptyFolder();
  const write = markdown === null ? "" : `printf '%s\\n' '${markdown}' > gate.md; `;
  writeFileSync(join(cwd, "evald"), `#!/bin/sh\n${write}exit ${code}\n`);
  chmodSync(join(cwd, "evald"), 0o755);
  // Like the runner, this runs each line as a command of one shell.
  const shell = Bun.spawn(["bash", "-eo", "pipefail", "-c", job.script.join("\n")], {
    cwd,
    env: {
      ...{ PATH: `${cwd}:${process.env.PATH}`, GITLAB_TOKEN: "glpat-1", PREVIEW_URL: "https://preview.example" },
      ...{ CI_API_V4_URL: `${server.url.origin}/api/v4`, CI_PROJECT_ID: "7", CI_MERGE_REQUEST_IID: "3" },
      CI_JOB_NAME: "docs",
    },
    stdout: "pipe",
    stderr: "pipe",
  });
  const stderr = await new Response(shell.stderr).text();
  return { code: await shell.exited, stderr };
}

test("the documented GitLab job adds one note, updates it later, and exits with the code of the gate", async () => {
  // There is more than one page of other notes, one of which quotes another job's marker.
  const others = Array.from({ length: 130 }, (_, i) => ({
    id: i + 1,
    body: i === 5 ? "[//]: # (evald other)" : `${i}`,
  }));
  const { notes, calls, server } = gitlab(others);
  expect(await runJob(server, { markdown: "# Failed", code: 1 })).toEqual({ code: 1, stderr: "" });
  expect([notes.length, notes.at(-1)?.body]).toEqual([131, "# Failed\n\n[//]: # (evald docs)\n"]);
  expect(await runJob(server, { markdown: "# Passed", code: 0 })).toEqual({ code: 0, stderr: "" });
  expect([notes.length, notes.at(-1)?.body]).toEqual([131, "# Passed\n\n[//]: # (evald docs)\n"]);
  expect(calls).toEqual(["POST", "PUT 131"]);
  // Without a result there is nothing to write.
  expect((await runJob(server, { markdown: null, code: 3 })).code).toBe(3);
  expect(calls.length).toBe(2);
  await server.stop(true);
}, 300_000);
