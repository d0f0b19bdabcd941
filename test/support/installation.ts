import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import "reflect-metadata";
import { PemConverter, SubjectAlternativeNameExtension, X509CertificateGenerator } from "@peculiar/x509";

/** A mail server on loopback that takes the login `user` with `password`, and counts emails. `speaks` false: it is no mail server. */
export function startMailServer({ speaks = true, tls }: { speaks?: boolean; tls?: Bun.TLSOptions } = {}) {
  const login = btoa("\0user\0password");
  const state = { mails: 0 };
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    ...(tls && { tls }),
    socket: {
      open(socket) {
        socket.write(speaks ? "220 mail.test\r\n" : "HTTP/1.1 400 Bad Request\r\n\r\n");
      },
      data(socket, bytes) {
        for (const line of bytes.toString().trim().split("\r\n")) {
          const [verb = "", how, credentials] = line.split(" ");
          if (verb === "EHLO") socket.write("250-mail.test\r\n250 AUTH PLAIN\r\n");
          else if (verb === "AUTH" && how === "PLAIN")
            socket.write(credentials === login ? "235 welcome\r\n" : "535 not you\r\n");
          else socket.write("250 ok\r\n");
          if (verb === "MAIL") state.mails++;
        }
      },
    },
  });
  return {
    url: (password = "password") => `${tls ? "smtps" : "smtp"}://user:${password}@127.0.0.1:${server.port}`,
    state,
    close: () => server.stop(true),
  };
}

const dayMs = 86_400_000;

/** A certificate for 127.0.0.1 that no authority signed, and its key, as PEM files. `days`: for how long it is still valid. */
export async function makeCertificate(days: number): Promise<{ certificate: string; key: string }> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const signed = await X509CertificateGenerator.createSelfSigned({
    name: "CN=127.0.0.1",
    keys,
    signingAlgorithm: algorithm,
    notBefore: new Date(Date.now() + (days - 90) * dayMs),
    notAfter: new Date(Date.now() + days * dayMs),
    extensions: [new SubjectAlternativeNameExtension([{ type: "ip", value: "127.0.0.1" }])],
  });
  const folder = mkdtempSync(join(tmpdir(), "evald-certificate-"));
  const [certificate, key] = [join(folder, "certificate.pem"), join(folder, "key.pem")];
  writeFileSync(certificate, signed.toString("pem"));
  writeFileSync(key, PemConverter.encode(await crypto.subtle.exportKey("pkcs8", keys.privateKey), "PRIVATE KEY"));
  return { certificate, key };
}
