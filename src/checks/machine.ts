import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { openFilesInSandbox } from "../agents/sandbox/problems.ts";
import { type CheckInput, type Finding, notApplicable, ok, problemFound } from "./finding.ts";

/** Whether the hard limit for open files is high enough. Each program may raise its own limit up to the hard limit. */
export function checkOpenFiles(): Finding {
  const limits = readText("/proc/self/limits");
  const [, limit] = /^Max open files +\S+ +(\S+)/m.exec(limits) ?? [];
  if (limit === undefined) return notApplicable("the system doesn't tell");
  if (limit === "unlimited" || Number(limit) >= openFilesInSandbox) return ok(limit);
  return problemFound("open_files_low", `it is ${limit}; at least ${openFilesInSandbox} are needed`);
}

const readText = (path: string): string => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
};

/** Whether the service could listen on its port, if it isn't running. */
export async function checkPort({ config, service }: CheckInput): Promise<Finding> {
  const { host, port } = config;
  if (service !== null) return notApplicable("the service is running");
  if (port === 0) return notApplicable("the service picks a free port");
  const code = await findListenProblem(host.replace(/^\[|\]$/g, ""), port);
  if (code === null) return ok(`${host}:${port} is free`);
  if (code === "EADDRINUSE")
    return problemFound("port_taken", `another program listens on ${host}:${port}`, String(port));
  if (code === "EACCES") return problemFound("port_forbidden", `port ${port} of ${host}`, String(port));
  return problemFound("host_unavailable", `${host}: ${code}`, host);
}

/** Listens on a port for a moment. Returns the code of the error; null: there was none. */
const findListenProblem = (host: string, port: number): Promise<string | null> =>
  new Promise((done) => {
    const server = createServer();
    server.once("error", (error) => done("code" in error ? String(error.code) : error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => done(null)));
  });

const authorityVariables = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"];
/** A file with more certificates is the bundle of a distribution, in which some certificates have always expired. */
const maxOwnAuthorities = 20;

/** Whether the files of certificate authorities in the environment can be read and have valid certificates. */
export function checkAuthorities({ env, now }: CheckInput): Finding[] {
  const variables = authorityVariables.filter((name) => env[name]);
  if (variables.length === 0) return [notApplicable("no file is set")];
  return variables.map((name) => checkAuthorityFile(name, env[name] ?? "", now()));
}

function checkAuthorityFile(variable: string, path: string, nowMs: number): Finding {
  let text: string;
  try {
    if (!statSync(path).isFile()) return problemFound("authority_unreadable", `${variable}: it is no file`, path);
    text = readFileSync(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : error;
    return problemFound("authority_unreadable", `${variable}: ${code}`, path);
  }
  const blocks =
    text.match(/-----BEGIN (TRUSTED )?CERTIFICATE-----[\s\S]+?-----END (TRUSTED )?CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) return problemFound("authority_invalid", `${variable}: it has no certificate`, path);
  if (blocks.length > maxOwnAuthorities) return ok(`${variable}: ${blocks.length} certificates`, path);
  try {
    const expired = blocks
      .map((block) => new X509Certificate(block))
      .find(({ validTo }) => Date.parse(validTo) < nowMs);
    if (expired)
      return problemFound("authority_expired", `${variable}: ${expired.subject} until ${expired.validTo}`, path);
  } catch {
    return problemFound("authority_invalid", `${variable}: a certificate can't be parsed`, path);
  }
  return ok(`${variable}: ${blocks.length === 1 ? "1 certificate" : `${blocks.length} certificates`}`, path);
}
