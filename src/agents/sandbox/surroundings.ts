import { existsSync, readdirSync, realpathSync } from "node:fs";
import { nodeRoutes } from "./bridge.ts";
import nodeScript from "./node-routes.cjs" with { type: "text" };

/** The certificate authorities that the machine trusts. */
export const systemCertificates = "/etc/ssl/certs/ca-certificates.crt";
const ownCertificates = "/run/evald/ca-certificates.crt";

/** Programs that have their own list of authorities read one of these variables. */
const certificateVariables =
  "SSL_CERT_FILE NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE PIP_CERT CURL_CA_BUNDLE GIT_SSL_CAINFO CARGO_HTTP_CAINFO AWS_CA_BUNDLE DENO_CERT CODEX_CA_CERTIFICATE".split(
    " ",
  );

/**
 * The address to which host names lead. It is public, because programs refuse to fetch from private addresses. Nothing can be sent to it, because the
 * sandbox has no route.
 */
const proxiedAddress = "93.184.215.14";

const isLocal = (name: string) => /(^|\.)localhost$/.test(name);

/** The files that differ from the machine's files, by path. `hosts`: names besides localhost that can be looked up. */
export function generatedFiles(hosts: string[] = []): Record<string, string> {
  const lines = hosts
    .filter((name) => name !== "localhost")
    .map((name) => `${isLocal(name) ? "127.0.0.1" : proxiedAddress} ${name}\n`);
  return {
    "/etc/passwd":
      "agent:x:1000:1000:agent:/home/agent:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "/etc/group": "agent:x:1000:\nnogroup:x:65534:\n",
    "/etc/hosts": `127.0.0.1 localhost\n::1 localhost\n${lines.join("")}`,
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    [nodeRoutes]: nodeScript,
  };
}

/**
 * Mounts the files of trusted authorities at separate paths. Also mounts them over the machine's files, for programs that don't read the variables.
 */
export function trustBinds(certificates?: { pem: string; java: string }): { from: string; to: string }[] {
  if (!certificates) return [];
  const { pem, java } = certificates;
  const places = [ownCertificates, ...(existsSync(systemCertificates) ? [realpathSync(systemCertificates)] : [])];
  return [...places.map((to) => ({ from: pem, to })), ...javaKeyStores().map((to) => ({ from: java, to }))];
}

const javaFolder = "/usr/lib/jvm";

/** The lists of trusted authorities of the installed versions of Java. */
function javaKeyStores(): string[] {
  if (!existsSync(javaFolder)) return [];
  const stores = readdirSync(javaFolder)
    .flatMap((name) => [`${name}/lib/security/cacerts`, `${name}/jre/lib/security/cacerts`])
    .map((name) => `${javaFolder}/${name}`)
    .filter((path) => existsSync(path));
  return [...new Set(stores.map((path) => realpathSync(path)))];
}

/** The variables of every program. `hasOwnCertificates`: whether the sandbox has its own list of trusted authorities. */
export function commonVariables(hasOwnCertificates: boolean): Record<string, string> {
  const trusted = hasOwnCertificates ? ownCertificates : systemCertificates;
  return {
    PATH: "/usr/local/bin:/usr/bin:/bin",
    HOME: "/home/agent",
    USER: "agent",
    LANG: "C.UTF-8",
    TMPDIR: "/tmp",
    ...((hasOwnCertificates || existsSync(systemCertificates)) &&
      Object.fromEntries(certificateVariables.map((name) => [name, trusted]))),
  };
}
