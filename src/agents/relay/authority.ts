import { createHash, KeyObject } from "node:crypto";
import { isIP } from "node:net";

/** A certificate and its private key, in PEM. */
type Leaf = { cert: string; key: string };

/** A certificate authority for one run, with which the relay answers for hosts of the run. */
export type Authority = {
  /** The authority's own certificate, in PEM. */
  certificate: string;
  /** SHA-256 of the public key of every certificate that it issues, in Base64, for browsers, which read no file of authorities. */
  keyDigest(): Promise<string>;
  /** A certificate for host names and IP addresses, issued once for the same list. */
  leafOf(hosts: string[]): Promise<Leaf>;
};

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const hourMs = 3_600_000;
/** Longer than any run, with room for a clock that is wrong inside a sandbox. */
const validity = (now: number) => ({ notBefore: new Date(now - hourMs), notAfter: new Date(now + 48 * hourMs) });
const serialNumber = () => `01${Buffer.from(crypto.getRandomValues(new Uint8Array(15))).toString("hex")}`;
const newKeys = ({ canExport }: { canExport: boolean }) =>
  crypto.subtle.generateKey(algorithm, canExport, ["sign", "verify"]);

/** The library requires the polyfill when it is loaded; static imports don't guarantee that order for CommonJS modules. */
async function loadLibrary() {
  await import("reflect-metadata");
  return import("@peculiar/x509");
}

/** Creates a certificate authority whose private key exists only in the memory of this process and cannot be exported. */
export async function createAuthority(now: () => number): Promise<Authority> {
  const x509 = await loadLibrary();
  const { publicKey, privateKey } = await newKeys({ canExport: false });
  const name = "CN=evald run";
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name,
    ...validity(now()),
    signingAlgorithm: algorithm,
    keys: { publicKey, privateKey },
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
    ],
  });
  const leafs = new Map<string, Promise<Leaf>>();
  const leafKeys = newKeys({ canExport: true });

  async function issue(hosts: string[]): Promise<Leaf> {
    const keys = await leafKeys;
    const cert = await x509.X509CertificateGenerator.create({
      serialNumber: serialNumber(),
      // A common name has at most 64 characters; clients read the alternative name.
      subject: "CN=evald run host",
      issuer: name,
      ...validity(now()),
      signingAlgorithm: algorithm,
      publicKey: keys.publicKey,
      signingKey: privateKey,
      extensions: [
        new x509.SubjectAlternativeNameExtension(
          hosts.map((value) => ({ type: isIP(value) ? ("ip" as const) : ("dns" as const), value })),
        ),
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
        await x509.AuthorityKeyIdentifierExtension.create(publicKey),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    const key = KeyObject.from(keys.privateKey).export({ type: "pkcs8", format: "pem" });
    return { cert: cert.toString("pem"), key: String(key) };
  }

  return {
    certificate: root.toString("pem"),
    async keyDigest() {
      const { publicKey } = await leafKeys;
      return createHash("sha256")
        .update(Buffer.from(await crypto.subtle.exportKey("spki", publicKey)))
        .digest("base64");
    },
    leafOf(hosts) {
      const key = hosts.join(" ");
      const leaf = leafs.get(key) ?? issue(hosts);
      leafs.set(key, leaf);
      return leaf;
    },
  };
}
