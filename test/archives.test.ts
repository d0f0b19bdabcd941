import { describe, expect, test } from "bun:test";
import { mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { create } from "tar";
import { testApp } from "./support/app.ts";

const packed = async (files: Record<string, string>): Promise<Uint8Array> =>
  new Uint8Array(await new Bun.Archive(files, { compress: "gzip" }).bytes());

/** One header block of the ustar format (POSIX.1-1988), with a body of zeros, as gzip. */
function hostile({
  path,
  type = "0",
  link = "",
  size = 0,
}: {
  path: string;
  type?: string;
  link?: string;
  size?: number;
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
  return gzipSync(Buffer.concat([block, Buffer.alloc(Math.ceil(size / 512) * 512), Buffer.alloc(1024)]));
}

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

test("another organization can't see or use it", async () => {
  const { send, upload, b } = setUp();
  const headers = { authorization: `Bearer ${b.key}` };
  const { body } = await upload(await packed({ a: "1" }));
  expect((await send("GET", "/api/v1/archives", { headers })).body).toEqual([]);
  expect((await send("DELETE", `/api/v1/archives/${body.id}`, { headers })).status).toBe(404);
  const input = { text: "x", workspace: { archive: body.id } };
  expect((await send("POST", "/api/v1/prompts", { body: input, headers })).status).toBe(400);
});

describe("an invalid archive is rejected", () => {
  test("with a link to a file outside, created by tar itself", async () => {
    const folder = mkdtempSync(join(tmpdir(), "archive-"));
    writeFileSync(join(folder, "a.txt"), "a");
    symlinkSync("/etc/passwd", join(folder, "users"));
    const data = await create({ gzip: true, cwd: folder, preservePaths: true }, ["."]).concat();
    const { status, body } = await setUp().upload(data as Uint8Array);
    expect([status, body.detail]).toEqual([400, expect.stringContaining("users")]);
  });

  test.each([
    ["with a path above it", hostile({ path: "../evil" }), 400],
    ["with an absolute path", hostile({ path: "/etc/cron.d/evil" }), 400],
    ["with a hard link to a file outside", hostile({ path: "a", type: "1", link: "../../etc/passwd" }), 400],
    ["with a device", hostile({ path: "disk", type: "4" }), 400],
    ["with more than 256 MiB of files", hostile({ path: "big", size: 257 * 1024 ** 2 }), 400],
    ["that is empty", gzipSync(Buffer.alloc(1024)), 400],
    ["that is cut off", hostile({ path: "a", size: 4096 }).subarray(0, 60), 400],
    ["that is no gzip", new TextEncoder().encode("PK\u0003\u0004"), 400],
    ["that is larger than 5 MiB", Buffer.concat([gzipSync("x"), Buffer.alloc(5 * 1024 ** 2)]), 413],
  ])("%s", async (_, data, status) => {
    const { send, upload } = setUp();
    const refused = await upload(data);
    expect([refused.status, typeof refused.body.detail]).toEqual([status, "string"]);
    expect((await send("GET", "/api/v1/archives")).body).toEqual([]);
  });
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
])("an invalid workspace is rejected at %s", async (field, workspace) => {
  const { status, body } = await testApp().send("POST", "/api/v1/prompts", { body: { text: "x", workspace } });
  expect([status, body.detail]).toEqual([400, expect.stringContaining(`Invalid ${field}`)]);
});
