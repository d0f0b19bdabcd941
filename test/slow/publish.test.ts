import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { name as launcher } from "../../package.json" with { type: "json" };
import { packageOf, tarballOf, toLauncherPackage, toPlatformPackage } from "../../release/npm.ts";
import { platforms } from "../../release/platforms.ts";
import { startRegistry } from "../support/registry.ts";

const folder = mkdtempSync(join(tmpdir(), "evald-publish-test-"));
const packages = platforms.map(packageOf);
const license = { path: "LICENSE", content: Buffer.from("MIT") };
let registry: ReturnType<typeof startRegistry>;

/** Writes the packages of a release with tiny executables. */
function writePackages(content: string): void {
  const built = platforms.map((platform) => ({ platform, executable: Buffer.from(`${content} ${platform.name}`) }));
  for (const each of built)
    writeFileSync(join(folder, tarballOf(packageOf(each.platform))), toPlatformPackage(each, [license], 0));
  writeFileSync(join(folder, tarballOf(launcher)), toLauncherPackage(built, license, 0));
}

async function publish() {
  const script = join(import.meta.dir, "..", "..", "release", "publish.ts");
  const child = Bun.spawn([process.execPath, script, registry.url, folder], {
    // npm publishes nothing without a token, even to a registry that asks for none.
    env: {
      PATH: process.env.PATH ?? "",
      HOME: folder,
      [`npm_config_//${new URL(registry.url).host}/:_authToken`]: "x",
    },
    stdout: "ignore",
    stderr: "pipe",
  });
  const stderr = await new Response(child.stderr).text();
  return { code: await child.exited, stderr };
}

beforeAll(() => {
  registry = startRegistry();
  writePackages("first");
});

afterAll(() => {
  registry.stop();
  rmSync(folder, { recursive: true, force: true });
});

test("the launcher is published only after the packages of all platforms, and publishing can be repeated", async () => {
  registry.refused.add(packages[1]!);
  expect(await publish()).toMatchObject({ code: 1, stderr: expect.stringContaining(packages[1]!) });
  expect(registry.published).not.toContain(launcher);
  registry.refused.clear();
  expect(await publish()).toMatchObject({ code: 0 });
  expect(registry.published.at(-1)).toBe(launcher);
  expect(registry.published.toSorted()).toEqual([...packages, launcher].sort());
}, 120_000);

test("a release that differs from what is published of its version, or lacks a platform, is not published", async () => {
  const published = registry.published.length;
  writePackages("second");
  expect(await publish()).toMatchObject({ code: 1, stderr: expect.stringContaining("has another") });
  rmSync(join(folder, tarballOf(packages[0]!)));
  expect(await publish()).toMatchObject({ code: 1, stderr: expect.stringContaining(`has no ${packages[0]}`) });
  expect(registry.published.length).toBe(published);
}, 120_000);
