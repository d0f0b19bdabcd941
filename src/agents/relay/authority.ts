import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { bitString, boolean, integer, octetString, oid, sequence, set, tagged, utcTime, utf8String } from "./der.ts";

/** A certificate and its private key, in PEM. */
type Leaf = { cert: string; key: string };

/** A certificate authority for one run, with which the relay answers for hosts of the run. */
export type Authority = {
  /** The authority's own certificate, in PEM. */
  certificate: string;
  /** SHA-256 of the public key of every certificate that it issues, in Base64, for browsers, which read no file of authorities. */
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
const usages = { tls: bitString([0x80], 7), signing: bitString([0x06], 1) };
/** Bytes of a public key on the curve P-256, the last ones of its encoding. */
const pointBytes = 65;

const newKeys = () => generateKeyPairSync("ec", { namedCurve: "P-256" });
const encodingOf = (publicKey: KeyObject): Buffer => publicKey.export({ type: "spki", format: "der" });
const toPem = (der: Buffer): string =>
  `-----BEGIN CERTIFICATE-----\n${der.toString("base64").replace(/.{64}(?=.)/g, "$&\n")}\n-----END CERTIFICATE-----\n`;

/**
 * Creates a certificate authority whose private key exists only in the memory of this process. `now` in epoch ms. It is written out here, because a session
 * waits for it: a library takes 40 ms and 8 MiB to be loaded and used for the first time, and this takes 2 ms.
 */
export function createAuthority(now: () => number): Authority {
  const issuer = { name: "evald run", keys: newKeys() };
  const leafKeys = newKeys();
  const root = toCertificate({ subject: issuer.name, publicKey: issuer.keys.publicKey, issuer, now }, [
    extension(oids.basicConstraints, sequence(boolean(true), integer([0])), "critical"),
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
      extension(oids.authorityKeyIdentifier, sequence(tagged(0, keyIdentifierOf(issuer.keys.publicKey), "primitive"))),
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

/** A certificate in PEM (RFC 5280, section 4.1), valid longer than any run, with room for a clock that is wrong inside a sandbox. */
function toCertificate({ subject, publicKey, issuer, now }: CertificateFields, extensions: Buffer[]): string {
  const algorithm = sequence(oid(oids.ecdsaWithSha256));
  const content = sequence(
    tagged(0, integer([version]), "constructed"),
    integer([1, ...randomBytes(15)]),
    algorithm,
    toName(issuer.name),
    sequence(utcTime(new Date(now() - hourMs)), utcTime(new Date(now() + 48 * hourMs))),
    toName(subject),
    encodingOf(publicKey),
    tagged(3, sequence(...extensions), "constructed"),
  );
  return toPem(sequence(content, algorithm, bitString(sign("sha256", content, issuer.keys.privateKey))));
}

const toName = (commonName: string): Buffer => sequence(set(sequence(oid(oids.commonName), utf8String(commonName))));

const extension = (id: string, value: Buffer, kind: "critical" | "plain" = "plain"): Buffer =>
  sequence(oid(id), ...(kind === "critical" ? [boolean(true)] : []), octetString(value));

const toAlternativeName = (host: string): Buffer =>
  isIP(host)
    ? tagged(nameTags.ip, Buffer.from(ipaddr.parse(host).toByteArray()), "primitive")
    : tagged(nameTags.dns, Buffer.from(host), "primitive");

/** SHA-1 of the public key (RFC 5280, section 4.2.1.2). */
const keyIdentifierOf = (publicKey: KeyObject): Buffer =>
  createHash("sha1").update(encodingOf(publicKey).subarray(-pointBytes)).digest();
