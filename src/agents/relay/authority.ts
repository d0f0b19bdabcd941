import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { isIP } from "node:net";
import * as asn1 from "asn1js";
import ipaddr from "ipaddr.js";

/** A certificate and its private key, in PEM. */
type Leaf = { cert: string; key: string };

/** A certificate authority for one run, with which the relay answers for hosts of the run. */
export type Authority = {
  /** The authority's own certificate, in PEM. */
  certificate: string;
  /** SHA-256 of the public key of every certificate that it issues, in Base64. It is for browsers, because they don't read a file of authorities. */
  keyDigest: string;
  /** A certificate for host names and IP addresses, issued once for the same list. */
  leafOf(hosts: string[]): Leaf;
};

const hourMs = 3_600_000;
const oids = {
  commonName: "2.5.4.3",
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  subjectKeyIdentifier: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAlternativeName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyIdentifier: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
};
/** Version 3, which has extensions. */
const version = 2;
/** Numbers of the names in a subject's alternative names (RFC 5280, section 4.2.1.6). */
const nameTags = { dns: 2, ip: 7 };
/** What a key may be used for (section 4.2.1.3): to answer in TLS, or to sign certificates and lists of revoked ones. */
const usages = {
  tls: new asn1.BitString({ valueHex: Uint8Array.of(0x80), unusedBits: 7 }),
  signing: new asn1.BitString({ valueHex: Uint8Array.of(0x06), unusedBits: 1 }),
};
/** Bytes of a public key on the curve P-256, the last ones of its encoding. */
const pointBytes = 65;

const newKeys = () => generateKeyPairSync("ec", { namedCurve: "P-256" });
const encodingOf = (publicKey: KeyObject): Buffer => publicKey.export({ type: "spki", format: "der" });
const toPem = (der: Buffer): string =>
  `-----BEGIN CERTIFICATE-----\n${der.toString("base64").replace(/.{64}(?=.)/g, "$&\n")}\n-----END CERTIFICATE-----\n`;

/**
 * Creates a certificate authority whose private key exists only in the memory of this process. `now` in epoch ms. Certificates are encoded here,
 * because a session waits for the authority. Libraries for whole certificates take 40 ms and 8 MiB to be loaded and used for the first time.
 */
export function createAuthority(now: () => number): Authority {
  const issuer = { name: "evald run", keys: newKeys() };
  const leafKeys = newKeys();
  const root = toCertificate({ subject: issuer.name, publicKey: issuer.keys.publicKey, issuer, now }, [
    extension(oids.basicConstraints, sequence(new asn1.Boolean({ value: true }), integer(0)), "critical"),
    extension(oids.keyUsage, usages.signing, "critical"),
    extension(oids.subjectKeyIdentifier, octetString(keyIdentifierOf(issuer.keys.publicKey))),
  ]);
  const key = leafKeys.privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const issue = (hosts: string[]): string =>
    // A common name has at most 64 characters; clients read the alternative name.
    toCertificate({ subject: "evald run host", publicKey: leafKeys.publicKey, issuer, now }, [
      extension(oids.subjectAlternativeName, sequence(...hosts.map(toAlternativeName))),
      extension(oids.basicConstraints, sequence(), "critical"),
      extension(oids.keyUsage, usages.tls, "critical"),
      extension(oids.extendedKeyUsage, sequence(oid(oids.serverAuth))),
      extension(oids.authorityKeyIdentifier, sequence(contextBytes(0, keyIdentifierOf(issuer.keys.publicKey)))),
      extension(oids.subjectKeyIdentifier, octetString(keyIdentifierOf(leafKeys.publicKey))),
    ]);
  const leafs = new Map<string, Leaf>();
  return {
    certificate: root,
    keyDigest: createHash("sha256").update(encodingOf(leafKeys.publicKey)).digest("base64"),
    leafOf(hosts) {
      const name = hosts.join(" ");
      const leaf = leafs.get(name) ?? { cert: issue(hosts), key };
      leafs.set(name, leaf);
      return leaf;
    },
  };
}

type CertificateFields = {
  subject: string;
  publicKey: KeyObject;
  issuer: { name: string; keys: { privateKey: KeyObject } };
  now: () => number;
};

/** A certificate in PEM (RFC 5280, section 4.1). It is valid longer than any run, with a margin for a wrong clock inside a sandbox. */
function toCertificate({ subject, publicKey, issuer, now }: CertificateFields, extensions: asn1.Sequence[]): string {
  const algorithm = sequence(oid(oids.ecdsaWithSha256));
  const validity = [now() - hourMs, now() + 48 * hourMs].map((at) => new asn1.UTCTime({ valueDate: new Date(at) }));
  const content = sequence(
    contextValue(0, integer(version)),
    // The serial number is positive, because its first byte is below 128.
    new asn1.Integer({ valueHex: Uint8Array.of(1, ...randomBytes(15)) }),
    algorithm,
    toName(issuer.name),
    sequence(...validity),
    toName(subject),
    asn1.fromBER(encodingOf(publicKey)).result,
    contextValue(3, sequence(...extensions)),
  );
  const signature = sign("sha256", toDer(content), issuer.keys.privateKey);
  return toPem(toDer(sequence(content, algorithm, new asn1.BitString({ valueHex: signature }))));
}

const toDer = (value: asn1.Sequence): Buffer => Buffer.from(value.toBER());

const sequence = (...value: asn1.AsnType[]) => new asn1.Sequence({ value });
const integer = (value: number) => new asn1.Integer({ value });
const oid = (value: string) => new asn1.ObjectIdentifier({ value });
const octetString = (valueHex: Uint8Array) => new asn1.OctetString({ valueHex });

const contextTag = (tagNumber: number) => ({ tagClass: 3, tagNumber });
/** A value inside a context-specific tag. */
const contextValue = (tag: number, value: asn1.AsnType) =>
  new asn1.Constructed({ idBlock: contextTag(tag), value: [value] });
/** Bytes with a context-specific tag instead of the tag of their type. */
const contextBytes = (tag: number, valueHex: Uint8Array) => new asn1.Primitive({ idBlock: contextTag(tag), valueHex });

const toName = (commonName: string) =>
  sequence(new asn1.Set({ value: [sequence(oid(oids.commonName), new asn1.Utf8String({ value: commonName }))] }));

const extension = (id: string, value: asn1.AsnType, kind: "critical" | "plain" = "plain") =>
  sequence(
    oid(id),
    ...(kind === "critical" ? [new asn1.Boolean({ value: true })] : []),
    octetString(Buffer.from(value.toBER())),
  );

const toAlternativeName = (host: string) =>
  isIP(host)
    ? contextBytes(nameTags.ip, Uint8Array.from(ipaddr.parse(host).toByteArray()))
    : contextBytes(nameTags.dns, Buffer.from(host));

/** SHA-1 of the public key (RFC 5280, section 4.2.1.2). */
const keyIdentifierOf = (publicKey: KeyObject): Buffer =>
  createHash("sha1").update(encodingOf(publicKey).subarray(-pointBytes)).digest();
