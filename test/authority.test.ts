import { expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { createAuthority } from "../src/agents/relay/authority.ts";

const now = Date.parse("2026-03-01T12:00:00Z");
const authority = createAuthority(() => now);
const root = new X509Certificate(authority.certificate);

test("an authority signs itself, and may issue certificates only for hosts", () => {
  expect(root.verify(root.publicKey)).toBe(true);
  expect(root).toMatchObject({ ca: true, subject: "CN=evald run", issuer: "CN=evald run" });
  expect([root.validFrom, root.validTo].map((time) => Date.parse(time) - now)).toEqual([-3_600_000, 48 * 3_600_000]);
});

test.each([1, 8, 40])("a certificate for %i names is valid for each of them, and only for them", (count) => {
  const names = Array.from({ length: count }, (_, i) => `host-${i}.docs.acme.test`);
  const leaf = new X509Certificate(authority.leafOf([...names, "127.0.0.1", "::1"]).cert);
  expect(leaf.verify(root.publicKey)).toBe(true);
  expect(leaf.checkIssued(root)).toBe(true);
  expect(leaf.ca).toBe(false);
  expect(names.filter((name) => leaf.checkHost(name) === undefined)).toEqual([]);
  expect(["127.0.0.1", "::1"].map((address) => leaf.checkIP(address) !== undefined)).toEqual([true, true]);
  expect(leaf.checkHost("docs.acme.test")).toBeUndefined();
  expect(leaf.checkIP("127.0.0.2")).toBeUndefined();
});

test("each authority and each certificate has a key or number of its own", () => {
  const [first, second] = [authority, createAuthority(() => now)];
  const certificates = [first, second].flatMap(({ certificate, leafOf }) => [certificate, leafOf(["a.test"]).cert]);
  expect(new Set(certificates.map((pem) => new X509Certificate(pem).serialNumber)).size).toBe(4);
  expect(first.keyDigest).not.toBe(second.keyDigest);
  expect(new X509Certificate(second.leafOf(["a.test"]).cert).verify(root.publicKey)).toBe(false);
});
