import { describe, expect, test } from "bun:test";
import { mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { gzipSync } from "node:zlib";
import { create } from "tar";
import { readArchive } from "../src/archives/archives.ts";
import { listMembers } from "../src/auth/members.ts";
import { getPrompt } from "../src/prompts/prompts.ts";
import { testApp } from "./support/app.ts";
import { join as becomeMember, browse, signedIn } from "./support/people.ts";

const packed = async (files: Record<string, string | Blob>): Promise<Uint8Array> =>
  new Uint8Array(await new Bun.Archive(files, { compress: "gzip" }).bytes());

/** One header block of the ustar format (POSIX.1-1988), with a body of zeros, as gzip. */
function hostile({
  path,
  type = "0",
  link = "",
  size = 0,
  isCut = false,
}: {
  path: string;
  type?: string;
  link?: string;
  size?: number;
  /** Keeps only the header. */
  isCut?: boolean;
}) {
  const block = Buffer.alloc(512);
  block.write(path, 0);
  block.write("0000644\0", 100);
  block.write("0000000\0", 108);
  block.write("0000000\0", 116);
  block.write(`${size.toString(8).padStart(11, "0")}\0`, 124);
  block.write("00000000000\0", 136);
  block.write("        ", 148);
  block.write(type, 156);
  block.write(link, 157);
  block.write("ustar\u000000", 257);
  const sum = block.reduce((all, byte) => all + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  if (isCut) return gzipSync(block);
  return gzipSync(Buffer.concat([block, Buffer.alloc(Math.ceil(size / 512) * 512), Buffer.alloc(1024)]));
}

/** A tar.gz that continues with 4.3 GiB of zeros, which are 4.2 MiB compressed. */
const bomb = (start: Uint8Array) =>
  Buffer.concat([start, ...Array<Buffer>(69).fill(gzipSync(Buffer.alloc(64 * 1024 ** 2)))]);

const setUp = () => {
  const app = testApp();
  const headers = { "content-type": "application/gzip" };
  return { ...app, upload: (body: Uint8Array) => app.send("POST", "/api/v1/archives", { body, headers }) };
};

test("an archive is stored once, listed, and deleted when no prompt uses it", async () => {
  const { send, upload } = setUp();
  const data = await packed({ "README.md": "# Hi", "src/app.js": "1" });
  const first = await upload(data);
  expect(first.status).toBe(201);
  expect(first.body).toMatchObject({ bytes: data.length, files: 2, digest: expect.stringMatching(/^[0-9a-f]{64}$/) });
  expect((await upload(data)).body).toEqual(first.body);
  expect((await send("GET", "/api/v1/archives")).body).toEqual([first.body]);

  const workspace = { archive: first.body.id, setup: "npm install", env: { DEBUG: "1" }, instructions: "Be brief." };
  const prompt = await send("POST", "/api/v1/prompts", { body: { text: "x", workspace } });
  expect([prompt.status, prompt.body.workspace]).toEqual([201, workspace]);
  expect((await send("DELETE", `/api/v1/archives/${first.body.id}`)).status).toBe(409);
  await send("PATCH", `/api/v1/prompts/${prompt.body.id}`, { body: { workspace: null } });
  expect((await send("DELETE", `/api/v1/archives/${first.body.id}`)).body).toEqual(first.body);
  expect((await send("DELETE", `/api/v1/archives/${first.body.id}`)).status).toBe(404);
  expect((await send("GET", "/api/v1/archives")).body).toEqual([]);
});

test("an archive can't be seen or used by another organization", async () => {
  const { send, upload, b } = setUp();
  const headers = { authorization: `Bearer ${b.key}` };
  const { body } = await upload(await packed({ a: "1" }));
  expect((await send("GET", "/api/v1/archives", { headers })).body).toEqual([]);
  expect((await send("DELETE", `/api/v1/archives/${body.id}`, { headers })).status).toBe(404);
  const input = { text: "x", workspace: { archive: body.id } };
  expect((await send("POST", "/api/v1/prompts", { body: input, headers })).status).toBe(400);
});

describe("an archive is rejected", () => {
  test("if it links to a file outside, as created by tar itself", async () => {
    const folder = mkdtempSync(join(tmpdir(), "archive-"));
    writeFileSync(join(folder, "a.txt"), "a");
    symlinkSync("/etc/passwd", join(folder, "users"));
    const data = await create({ gzip: true, cwd: folder, preservePaths: true }, ["."]).concat();
    const { status, body } = await setUp().upload(data as Uint8Array);
    expect([status, body.detail]).toEqual([400, expect.stringContaining("users")]);
  });

  test.each([
    ["if a path leads above it", hostile({ path: "../evil" }), 400],
    ["if a path is absolute", hostile({ path: "/etc/cron.d/evil" }), 400],
    ["if it has a hard link to a file outside", hostile({ path: "a", type: "1", link: "../../etc/passwd" }), 400],
    ["if it has a device", hostile({ path: "disk", type: "4" }), 400],
    ["if it has more than 256 MiB of files", hostile({ path: "big", size: 257 * 1024 ** 2 }), 400],
    ["if it is empty", gzipSync(Buffer.alloc(1024)), 400],
    ["if it is cut off", hostile({ path: "a", size: 4096 }).subarray(0, 60), 400],
    ["if it is compressed twice", gzipSync(hostile({ path: "a" })), 400],
    ["if it isn't gzip", new TextEncoder().encode("PK\u0003\u0004"), 400],
    ["if it is larger than 5 MiB", Buffer.concat([gzipSync("x"), Buffer.alloc(5 * 1024 ** 2)]), 413],
  ])("%s", async (_, data, status) => {
    const { send, upload } = setUp();
    const refused = await upload(data);
    expect([refused.status, typeof refused.body.detail]).toEqual([status, "string"]);
    expect((await send("GET", "/api/v1/archives")).body).toEqual([]);
  });
});

test.each([
  ["a file", hostile({ path: "big", size: 4 * 1024 ** 3, isCut: true })],
  ["the end of the archive", await packed({ "README.md": "# Hi" })],
  ["a header that is skipped", hostile({ path: "x", type: "x", size: 4 * 1024 ** 3, isCut: true })],
])("an archive with gigabytes of zeros after %s takes little memory and time", async (_, start) => {
  const { send, upload } = setUp();
  const data = bomb(start);
  await upload(await packed({ a: "1" }));
  Bun.gc(true);
  const peakBytes = () => process.resourceUsage().maxRSS * 1024;
  const before = peakBytes();
  const watch = monitorEventLoopDelay({ resolution: 5 });
  watch.enable();
  const { status, body } = await upload(data);
  watch.disable();
  expect([status, body.error, body.detail]).toEqual([400, "bad_request", expect.stringContaining("256 MiB")]);
  expect(peakBytes() - before).toBeLessThan(128 * 1024 ** 2);
  expect(watch.max / 1e6).toBeLessThan(500);
  expect((await send("GET", "/api/v1/archives")).body).toHaveLength(1);
});

test.each([
  ["level 1", (tar: Buffer) => gzipSync(tar, { level: 1 })],
  ["level 9", (tar: Buffer) => gzipSync(tar, { level: 9 })],
  [
    "several members",
    (tar: Buffer) => Buffer.concat([tar.subarray(0, 3), tar.subarray(3)].map((part) => gzipSync(part))),
  ],
  ["zeros after the end", (tar: Buffer) => Buffer.concat([gzipSync(tar), Buffer.alloc(1000)])],
  ["text after the end of the tar file", (tar: Buffer) => gzipSync(Buffer.concat([tar, Buffer.from("after")]))],
  ["no end of the tar file", (tar: Buffer) => gzipSync(tar.subarray(0, -1024))],
])("an archive with %s is accepted unchanged", async (_, compress) => {
  const { upload } = setUp();
  const large = crypto.getRandomValues(Buffer.alloc(64 * 1024)).toString("base64") + "\0".repeat(40 * 1024 ** 2);
  const files = { "README.md": "# Hi", [`${"deep/".repeat(30)}ünï`]: "1", "large.bin": large };
  const data = compress(Buffer.from(await new Bun.Archive(files).bytes()));
  const { status, body } = await upload(data);
  const digest = new Bun.CryptoHasher("sha256").update(data).digest("hex");
  expect([status, body.files, body.digest]).toEqual([201, 3, digest]);
});

test.each([
  ["workspace.archive", { archive: "0199f3a1-7b21-7f02-9d11-2c9d4e5f6a70" }],
  [
    "workspace",
    { archive: "0199f3a1-7b21-7f02-9d11-2c9d4e5f6a70", repository: { url: "https://a.test/", ref: "main" } },
  ],
  ["workspace.repository.ref", { repository: { url: "https://a.test/", ref: "--upload-pack=x" } }],
  ["workspace.repository.url", { repository: { url: "ssh://a.test/", ref: "main" } }],
  ["workspace.env", { env: { https_proxy: "http://evil.test" } }],
  ["workspace.env", { env: { LD_PRELOAD: "/tmp/x.so" } }],
  ["workspace", { image: "debian" }],
  ["workspace.skills", { skills: {} }],
  ["workspace.skills.folder", { skills: { folder: "../skills" } }],
  ["workspace.skills.archive", { skills: { archive: "0199f3a1-7b21-7f02-9d11-2c9d4e5f6a70" } }],
  ["workspace.mcpServers.acme", { mcpServers: { acme: { url: "https://a.test/", command: "x" } } }],
  ["workspace.mcpServers.acme.url", { mcpServers: { acme: { url: "ftp://a.test/" } } }],
  ["workspace.mcpServers", { mcpServers: { "a/b": { command: "x" } } }],
])("an invalid workspace is rejected at %s", async (field, workspace) => {
  const { status, body } = await testApp().send("POST", "/api/v1/prompts", { body: { text: "x", workspace } });
  expect([status, body.detail]).toEqual([400, expect.stringContaining(`Invalid ${field}`)]);
});

describe("the prompt form", () => {
  const app = testApp();
  const { send, service, a } = app;

  /** Creates a prompt with files, as a person or as a browser without a session. */
  const submit = async (person: ReturnType<typeof browse>, path: string, fields: Record<string, string | Blob>) => {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    const encoded = new Response(form);
    const headers = { origin: new URL(app.baseUrl).origin, "content-type": encoded.headers.get("content-type") ?? "" };
    return await person.postBody(path, await encoded.bytes(), headers);
  };
  const text = "Read https://docs.example.com/";
  const file = (data: Uint8Array) => new File([Buffer.from(data)], "starter.tar.gz");
  const actionOf = (body: string) =>
    (/<form method="post" action="(\/prompts[^"]*)" enc/.exec(body)?.[1] ?? "").replaceAll("&amp;", "&");

  test("uploads archives, and keeps them if another field is wrong", async () => {
    const person = await signedIn(app);
    const data = await packed({ "README.md": "# Hi" });
    const action = actionOf((await person.get("/prompts/new")).body);
    const fields = { text, "upload.archive": file(data), "upload.skills.archive": new File([], "") };
    const wrong = await submit(person, action, { ...fields, runsPerEval: "0" });
    const [stored] = (await send("GET", "/api/v1/archives")).body;
    expect([wrong.status, wrong.body.includes(`<option value="${stored.id}" selected`)]).toEqual([400, true]);
    const preview = await submit(person, action, { ...fields, do: "preview" });
    expect([preview.status, preview.body.includes(`<option value="${stored.id}" selected`)]).toEqual([200, true]);
    const { location } = await submit(person, action, fields);
    const id = location?.split("/").at(-1) ?? "";
    expect(getPrompt(service.ctx, a.org, id).workspace).toEqual({ archive: stored.id });
    const skills = await packed({ "SKILL.md": "---\nname: x\n---" });
    await submit(person, actionOf((await person.get(`/prompts/${id}/edit`)).body), {
      text,
      "upload.skills.archive": file(skills),
    });
    const both = (await send("GET", "/api/v1/archives")).body;
    expect([both.length, getPrompt(service.ctx, a.org, id).workspace]).toEqual([
      2,
      { skills: { archive: both[0].id } },
    ]);
  });

  test.each([
    ["leads out of the archive", hostile({ path: "../evil" }), 400],
    ["leads out of the archive", hostile({ path: "a", type: "2", link: "/etc/passwd" }), 400],
    ["compressed with gzip", new TextEncoder().encode("PK\u0003\u0004"), 400],
    ["compressed with gzip", new Uint8Array(), 400],
    ["5 MiB", Buffer.concat([gzipSync("x"), Buffer.alloc(5 * 1024 ** 2)]), 413],
  ])("says what is wrong with an archive: %s", async (problem, data, status) => {
    const person = await signedIn(app);
    const answer = await submit(person, "/prompts", { text: "Kept text", "upload.archive": file(data) });
    const [, said] = /<p class="wrong">(archive:[^<]*)</.exec(answer.body) ?? [];
    expect([answer.status, said]).toEqual([status, expect.stringContaining(problem)]);
    expect(answer.body).toContain("Kept text");
  });

  test("keeps the archive if the sign-in has expired, and rejects archives from strangers", async () => {
    const person = await signedIn(app);
    const action = actionOf((await person.get("/prompts/new")).body);
    // The random bytes are larger than the forms that everyone may send.
    const data = await packed({
      "data.bin": Buffer.from(crypto.getRandomValues(new Uint8Array(64 * 1024))).toString("base64"),
    });
    const fields = { text: "Sent twice https://docs.example.com/", "upload.archive": file(data) };
    expect((await submit(browse(app), "/prompts", fields)).status).toBe(413);
    expect((await submit(browse(app), "/prompts?upload=MQ.AAAA", fields)).status).toBe(413);
    const unsent = await submit(browse(app), action, fields);
    expect([unsent.status, actionOf(unsent.body)]).toEqual([401, action]);
    const again = keptIn(unsent.body);
    const { location } = await submit(person, actionOf(unsent.body), again);
    const prompt = getPrompt(service.ctx, a.org, location?.split("/").at(-1) ?? "");
    expect(readArchive(service.ctx, a.org, prompt.workspace?.archive ?? "").equals(data)).toBe(true);
  });

  /** The fields that the page for signing in again keeps. */
  const keptIn = (body: string) =>
    Object.fromEntries(
      [...body.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)].map(([, name = "", value = ""]) => [
        name,
        value,
      ]),
    );

  test("keeps two archives of the largest size and a long text if the sign-in has expired", async () => {
    const person = await signedIn(app);
    const action = actionOf((await person.get("/prompts/new")).body);
    const random = Array.from({ length: 74 }, () => Buffer.from(crypto.getRandomValues(new Uint8Array(64 * 1024))));
    const [archive, skills] = await Promise.all(
      ["a.bin", "SKILL.md"].map((name) => packed({ [name]: new Blob(random) })),
    );
    expect(Math.min(archive?.length ?? 0, skills?.length ?? 0)).toBeGreaterThan(4.5 * 1024 ** 2);
    const long = { text, endGoal: "A long goal. ".repeat(7000) };
    const files = {
      "upload.archive": file(archive as Uint8Array),
      "upload.skills.archive": file(skills as Uint8Array),
    };
    const unsent = await submit(browse(app), action, { ...long, ...files });
    expect(unsent.status).toBe(401);
    const { status, location } = await submit(person, actionOf(unsent.body), keptIn(unsent.body));
    const id = location?.split("/").at(-1) ?? "";
    const { endGoal, workspace } = getPrompt(service.ctx, a.org, id);
    expect([status, endGoal]).toEqual([303, long.endGoal]);
    const stored = readArchive(service.ctx, a.org, workspace?.skills?.archive ?? "");
    expect(stored.equals(skills as Uint8Array)).toBe(true);
  });

  test("keeps submitted files for a day, and only for someone who is still a member", async () => {
    let at = Date.now();
    const other = testApp({ now: () => at });
    const email = "ada@example.com";
    const person = await signedIn(other, { role: "admin", email });
    const action = actionOf((await person.get("/prompts/new")).body);
    const send = async (path = action) => {
      const form = new FormData();
      form.append("text", "x".repeat(70_000));
      const encoded = new Response(form);
      const headers = {
        origin: new URL(other.baseUrl).origin,
        "content-type": encoded.headers.get("content-type") ?? "",
      };
      return (await browse(other).postBody(path, await encoded.bytes(), headers)).status;
    };
    at += 23 * 3600_000;
    expect(await send()).toBe(401);
    at += 2 * 3600_000;
    expect(await send()).toBe(413);
    at -= 2 * 3600_000;
    expect(await send()).toBe(401);
    // Otherwise, the person could open another form in another organization.
    becomeMember(other, other.b.org, "admin", email);
    const owner = await signedIn(other);
    const { memberId } = listMembers(other.service.ctx, other.a.org).find((each) => each.email === email) ?? {};
    await owner.post("/settings/members/change", { member: memberId ?? "", do: "remove", confirmed: "1" });
    expect(listMembers(other.service.ctx, other.a.org).map((each) => each.email)).toEqual([owner.email]);
    expect(await send()).toBe(413);
    const opened = actionOf((await person.get("/prompts/new")).body);
    expect([opened !== action, await send(opened)]).toEqual([true, 401]);
  });
});
