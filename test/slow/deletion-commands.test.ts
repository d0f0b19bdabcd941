import { expect, test } from "bun:test";
import { remoteCommands } from "../support/remote-commands.ts";
import { until } from "../support/until.ts";

const { run, runJson, urlOf } = remoteCommands("read,run,write,delete");

const refused = expect.objectContaining({ error: expect.any(String), detail: expect.any(String) });

test("prompts and runs are deleted, listed, restored and erased by their commands", async () => {
  await run("prompt", "create", "--title", "First", "--text", `See ${urlOf()}/docs`);
  const [{ runId }] = (await runJson("run", "First", "--wait")).runs;
  // Nobody can answer, so nothing happens without --yes.
  for (const args of [
    ["prompt", "delete", "First"],
    ["delete", "run", runId],
  ]) {
    const { code, out } = await run(...args, "--json");
    expect([args, code, JSON.parse(out)]).toEqual([args, 2, refused]);
  }
  const ofRun = await runJson("delete", "run", runId, "--yes");
  expect(ofRun).toMatchObject({ kind: "run", subjectId: runId, status: "pending", counts: { runs: 1 } });
  expect((await run("delete", "run", runId, "--yes")).code).toBe(2);
  expect(await runJson("deletions", "list")).toEqual([ofRun]);
  expect(await run("deletions", "restore", ofRun.id)).toEqual({ code: 0, out: ofRun.id });
  expect((await runJson("deletions", "restore", ofRun.id)).error).toBe("conflict");
  expect((await runJson("runs")).length).toBe(1);

  const { code, out: id } = await run("prompt", "delete", "First", "--yes");
  expect([code, (await runJson("runs")).length]).toEqual([0, 0]);
  expect((await run("deletions", "erase", id)).code).toBe(2);
  expect((await runJson("deletions", "erase", id, "--yes")).status).toMatch(/^eras/);
  await until("the erasure", async () => (await run("deletions", "list")).out.includes("erased "));
  expect((await run("deletions", "restore", id)).code).toBe(2);
}, 60_000);

test("the operator deletes and restores an organization, and exports, changes and deletes an account", async () => {
  expect((await runJson("org", "delete", "Nobody", "--yes")).error).toBe("not_found");
  expect((await run("org", "delete", "Acme")).code).toBe(2);
  const deletion = await runJson("org", "delete", "Acme", "--yes");
  expect(deletion).toMatchObject({ kind: "organization", title: "Acme", status: "pending" });
  // The running service notices what another process writes.
  expect([await runJson("org", "list"), (await run("whoami")).code]).toEqual([[], 2]);
  expect(await run("org", "restore", "Acme")).toEqual({ code: 0, out: deletion.subjectId });
  expect((await run("org", "restore", "Acme")).code).toBe(2);
  expect([(await runJson("org", "list")).length, (await run("whoami")).code]).toEqual([1, 0]);

  const setUp = async (path: string, fields: Record<string, string>) => {
    const headers = { origin: urlOf(), accept: "text/html" };
    return (await fetch(path, { method: "POST", headers, body: new URLSearchParams(fields), redirect: "manual" }))
      .status;
  };
  const [, path] = /(\/setup\/\S+)/.exec((await run("org", "setup-link", "Acme")).out) ?? [];
  const password = "correct horse battery staple";
  expect(await setUp(urlOf() + path, { name: "Ada", email: "ada@example.com", password })).toBe(303);
  expect(JSON.parse((await run("person", "export", "ada@example.com")).out)).toMatchObject({
    account: { name: "Ada", email: "ada@example.com" },
    organizations: [{ name: "Acme", role: "owner" }],
  });
  expect((await run("person", "set-email", "ada@example.com", "ada@example.org")).code).toBe(0);
  for (const args of [
    ["export", "ada@example.com"],
    ["set-email", "ada@example.com", "x@example.com"],
    ["delete", "ada@example.com", "--yes"],
    // The only owner, and no answer.
    ["delete", "ada@example.org", "--yes"],
    ["delete", "ada@example.org"],
  ])
    expect([args, (await run("person", ...args)).code]).toEqual([args, 2]);
  await run("org", "delete", "Acme", "--yes");
  expect((await run("person", "delete", "ada@example.org", "--yes")).code).toBe(0);
  expect((await run("person", "export", "ada@example.org")).code).toBe(2);
}, 120_000);
