import { expect, test } from "bun:test";
import manifest from "../package.json" with { type: "json" };
import { listParts, toNotices, toSbom } from "../release/bill-of-materials.ts";

const permissive =
  /^(MIT|MIT-0|ISC|OFL-1\.1|0BSD|Apache-2\.0|BSD-[23]-Clause|BlueOak-1\.0\.0|PSF-2\.0|\(AFL-2\.1 OR BSD-3-Clause\))$/;

test("packages have exact versions and permissive licenses, and only Bun may run an install script", async () => {
  const all = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies, ...manifest.overrides });
  expect(all.filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.-]+)?$/.test(version))).toEqual([]);
  expect(manifest.trustedDependencies).toEqual(["bun"]);
  expect((await listParts()).filter(({ license }) => !permissive.test(license))).toEqual([]);
});

test("the bill of materials names each package with its digest, license and the packages that it uses", async () => {
  const commit = { id: "7".repeat(40), seconds: 1_700_000_000 };
  const { components, dependencies, metadata, serialNumber } = await toSbom(commit);
  expect(metadata.timestamp).toBe("2023-11-14T22:13:20.000Z");
  expect(serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  expect((await toSbom(commit)).serialNumber).toBe(serialNumber);
  expect((await toSbom({ ...commit, id: "8".repeat(40) })).serialNumber).not.toBe(serialNumber);
  const refs = components.map((each) => each["bom-ref"]);
  expect(new Set(refs).size).toBe(refs.length);
  for (const [name, version] of Object.entries({ ...manifest.dependencies, bun: manifest.devDependencies.bun }))
    expect(components.find((each) => each.name === name && each.version === version)).toBeDefined();
  for (const { type, ...each } of components) {
    // Bun's license page says nothing about llhttp.
    expect(each.licenses?.length ?? each.name).toBe(each.name === "llhttp" ? "llhttp" : 1);
    if (type === "library" && each.purl.startsWith("pkg:npm/"))
      expect(each).toMatchObject({ hashes: [{ content: expect.stringMatching(/^[0-9a-f]{128}$/) }] });
  }
  // Bun contains these; they have versions of their own.
  for (const name of ["sqlite", "JavaScriptCore", "boringssl", "zlib-ng"])
    expect(components.find((each) => each.name === name)?.version).toMatch(/^(3\.\d+\.\d+|[0-9a-f]{40})$/);
  for (const name of ["brotli", "libwebp", "libjpeg-turbo"])
    expect(components.find((each) => each.name === name)).toMatchObject({ type: "library", licenses: [{}] });
  // A package that we patch is not the one that its digest stands for.
  const patched = components.filter((each) => "pedigree" in each).map(({ name, version }) => `${name}@${version}`);
  expect(patched).toEqual(Object.keys(manifest.patchedDependencies));
  expect(dependencies[0]?.ref).toBe(metadata.component["bom-ref"]);
  // Each package is there because another one uses it.
  const used = new Set(dependencies.flatMap(({ dependsOn }) => dependsOn));
  expect(refs.filter((ref) => !used.has(ref))).toEqual([]);
  expect([...used].filter((ref) => !refs.includes(ref))).toEqual([]);
});

test("the licenses of all packages are passed on with their texts", async () => {
  const notices = await toNotices();
  for (const { name, version } of await listParts()) expect(notices).toContain(`\n${name} ${version}\nLicense: `);
  expect(notices.match(/Permission is hereby granted/g)?.length).toBeGreaterThan(200);
});
