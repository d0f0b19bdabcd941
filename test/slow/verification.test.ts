import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pino from "pino";
import { readConfig } from "../../src/config/config.ts";
import { createContext } from "../../src/context.ts";
import { closeDb } from "../../src/db/open.ts";
import { signExport } from "../../src/exchange/signature.ts";
import { isVerified, type Verification, verifyExport } from "../../src/exchange/verification.ts";
import { emptyDb } from "../support/app.ts";
import { buildExecutable, call, client, emptyFolder, furnish, serve, untilRun } from "../support/executable.ts";
import { randomOf } from "../support/random.ts";
import { serveSite } from "../support/site.ts";
import { isThorough } from "../support/thorough.ts";

const html = (body: string) => ({
  body: `<!doctype html><html lang="en"><head><title>Acme</title></head><body>${body}</body></html>`,
});
const site = serveSite({
  "/": html(
    '<h1>Acme</h1><p>See <a href="/upload">how to upload a file</a> and <a href="/gone">the reference</a>.</p>',
  ),
  "/upload": html("<h1>Upload a file</h1><p>Run this:</p><pre><code>acme upload file.txt</code></pre>"),
});
const cwd = emptyFolder();
const secretKey = randomBytes(32);
const env = { EVALD_SECRET_KEY: secretKey.toString("base64"), EVALD_ALLOW_PRIVATE: "127.0.0.1" };
const file = join(cwd, "report.jsonl");
let url = "";
let slug = "";
let stop: () => Promise<unknown>;

beforeAll(async () => {
  await buildExecutable();
  const { key } = await furnish(cwd);
  const service = await serve({ cwd, env });
  ({ url } = service);
  stop = () => service.stop();
  const ask = client(url, key);
  const { body: prompt } = await ask("POST", "/api/v1/prompts", {
    ...{ title: "Upload", text: "Upload a file with Acme", endGoal: "A file is uploaded with acme" },
    additionalUrls: [{ url: site.url }],
  });

  const { body: run } = await ask("POST", `/api/v1/prompts/${prompt.id}/run`, { urlMap: {} });
  const { report } = await untilRun(ask, run.runId, "completed", "failed");
  ({ slug } = report);
  const address = ["--url", url];
  expect(await call(["export", file, "--run", run.runId, ...address], { cwd, env: { EVALD_KEY: key } })).toMatchObject({
    code: 0,
  });
}, 300_000);
afterAll(async () => {
  await stop();
  await site.stop();
});

const publicKey = async () => (await fetch(`${url}/.well-known/evald-signing-key`)).text();
const verifyWith = (path: string, ...args: string[]) => call(["verify", path, "--json", ...args], { cwd });

/** Verifies a text in this process; the message of the error for a file that isn't read. */
function verification(content: string | Uint8Array): Verification | string {
  const path = join(cwd, "changed.jsonl");
  writeFileSync(path, content);
  const db = emptyDb();
  const log = pino({ level: "silent" });
  try {
    return verifyExport(createContext({ db, config: readConfig({}), log, agents: {}, baseUrl: () => "" }), path, null);
  } catch (error) {
    return String(error);
  } finally {
    closeDb(db);
  }
}

/** An export with changed rows and the right checksum, signed with a key; null: unsigned. */
function forged(change: (rows: string) => string, key: Uint8Array | null): string {
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  const [header = ""] = lines;
  const rows = change(`${lines.slice(1, -1).join("\n")}\n`);
  const sha256 = new Bun.CryptoHasher("sha256").update(rows).digest("hex");
  const checksum = { rows: lines.length - 2, sha256 };
  return `${header}\n${rows}${JSON.stringify({ type: "end", ...checksum, ...(key && signExport(key, header, checksum)) })}\n`;
}

describe("the export of a run", () => {
  test("is verified by its signature and by grading the session again, without the instance", async () => {
    const result = await verifyWith(file, "--key", (await publicKey()).trim());
    expect(result.code).toBe(0);
    const { signature, gradings } = JSON.parse(result.stdout);
    expect({ signature, gradings }).toEqual({
      signature: "valid",
      gradings: [{ slug, methodology: "3", state: "equal", fields: [] }],
    });
  });

  test("is not verified with the key of another instance", async () => {
    const other = `ed25519:${randomBytes(32).toString("base64")}`;
    const { code, stdout } = await verifyWith(file, "--key", other);
    expect([code, JSON.parse(stdout).signature]).toEqual([1, "other_key"]);
    expect(await verifyWith(file, "--key", "abc")).toMatchObject({ code: 2 });
  });

  test("is not verified after any change of a byte", () => {
    const bytes = readFileSync(file);
    const random = randomOf(7);
    const positions = Array.from({ length: isThorough ? 2000 : 60 }, () => Math.floor(random() * (bytes.length - 1)));
    const unnoticed = positions.filter((position) => {
      const changed = Buffer.from(bytes);
      changed[position] = (changed[position] as number) ^ (1 + Math.floor(random() * 7));
      if (changed[position] === 10 || bytes[position] === 10) return false;
      const result = verification(changed);
      return typeof result !== "string" && isVerified(result);
    });
    expect(unnoticed).toEqual([]);
  });

  test("is not verified with another spelling of the same signature", () => {
    const content = readFileSync(file, "utf8");
    // The last character before the padding has four bits that decoding ignores.
    const respelled = content.replace(/(?<="signature":"[^"]*)[AQgw](?==="\}\s*$)/, (last) =>
      String.fromCharCode(last.charCodeAt(0) + 1),
    );
    expect(respelled).not.toBe(content);
    expect(verification(respelled)).toMatchObject({ signature: "invalid" });
  });

  test("is not verified if rows were changed and the checksum was made right", () => {
    const raise = (rows: string) => rows.replace(/("type":"report".*?"score":)\d+(\.\d+)?/, "$199.9");
    expect(verification(forged(raise, null))).toMatchObject({
      signature: "missing",
      gradings: [{ slug, state: "different", fields: ["score"] }],
    });
    const signature = /"publicKey".*(?=\})/.exec(readFileSync(file, "utf8"))?.[0];
    const resigned = forged(raise, null).replace(/\}\n$/, `,${signature}}\n`);
    expect(verification(resigned)).toMatchObject({ signature: "invalid" });
  });

  test("grades differently if only the events were changed, even if the instance signed that", () => {
    const edited = forged((rows) => rows.replaceAll("acme upload file.txt", "acme upload (file.txt"), secretKey);
    expect(verification(edited)).toMatchObject({ signature: "valid" });
    const slowed = forged((rows) => rows.replace(/("type":"event".*?"status":)404/g, "$1500"), secretKey);
    expect(verification(slowed)).toMatchObject({ signature: "valid", gradings: [{ slug, state: "different" }] });
  });
});

test("an instance without EVALD_SECRET_KEY has no signing key", async () => {
  const service = await serve({ cwd: emptyFolder() });
  const { status } = await fetch(`${service.url}/.well-known/evald-signing-key`);
  await service.stop();
  expect(status).toBe(404);
});
