import { randomInt } from "node:crypto";
import { mkdtempSync, readFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import tls from "node:tls";

const ip = (command: string) => Bun.spawnSync(["ip", ...command.split(" ")], { stderr: "pipe" });

/** Throws with the output of `ip` if the command fails. */
function run(command: string): void {
  const { success, stderr } = ip(command);
  if (!success) throw new Error(`ip ${command}: ${stderr}`);
}

/** Why this machine can't have network namespaces; null if it can. */
export function networkProblem(): string | null {
  const name = `evald-${process.pid}`;
  try {
    const { success, stderr } = ip(`netns add ${name}`);
    if (!success) return String(stderr).trim();
    const wire = ip(`link add evald-test0 type veth peer name evald-test1 netns ${name}`);
    ip(`netns del ${name}`);
    return wire.success ? null : String(wire.stderr).trim();
  } catch (error) {
    return String(error);
  }
}

/**
 * A network of machines, each a network namespace with one cable to a switch. This process is at `address` on the same switch. Needs root;
 * call `close`.
 */
export function createNetwork(machines: number) {
  const id = randomInt(36 ** 4).toString(36);
  const prefix = `10.${randomInt(128, 250)}.${randomInt(250)}`;
  const address = `${prefix}.1`;
  const bridge = `ev${id}`;
  run(`link add ${bridge} type bridge`);
  run(`addr add ${address}/24 dev ${bridge}`);
  run(`link set ${bridge} up`);

  const all = Array.from({ length: machines }, (_, i) => {
    const name = `evald-${id}-${i}`;
    const cable = `${bridge}p${i}`;
    run(`netns add ${name}`);
    run(`link add ${cable} type veth peer name eth0 netns ${name}`);
    run(`link set ${cable} master ${bridge} up`);
    for (const command of [`addr add ${prefix}.${i + 2}/24 dev eth0`, "link set eth0 up", "link set lo up"])
      run(`-n ${name} ${command}`);
    return {
      name,
      /** The prefix of a command that runs on the machine. */
      command: ["ip", "netns", "exec", name],
      /** Its own temporary folder. */
      tmp: mkdtempSync(join(tmpdir(), "evald-machine-")),
      unplug: () => run(`link set ${cable} down`),
      plug: () => run(`link set ${cable} up`),
      /** IDs of the processes that run on it. */
      pids: () =>
        String(ip(`netns pids ${name}`).stdout)
          .split("\n")
          .filter(Boolean),
    };
  });

  return {
    address,
    machines: all,
    close(): void {
      for (const { name, pids } of all) {
        for (const pid of pids()) process.kill(Number(pid), "SIGKILL");
        ip(`netns del ${name}`);
      }
      ip(`link del ${bridge}`);
    },
  };
}

/** A certificate for an address, signed by itself: the files of the certificate and its key. */
export function createCertificate(address: string): { cert: string; key: string } {
  const folder = mkdtempSync(join(tmpdir(), "evald-cert-"));
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const { success, stderr } = Bun.spawnSync([
    ...["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"],
    ...["-keyout", key, "-out", cert, "-subj", "/CN=evald test", "-addext", `subjectAltName=IP:${address}`],
  ]);
  if (!success) throw new Error(String(stderr));
  return { cert, key };
}

/** Ends TLS at `address` in front of a port of this machine, as a proxy does in front of a real service. */
export async function serveTls(address: string, port: number) {
  const { cert, key } = createCertificate(address);
  const server = tls.createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (outer) => {
    const inner = net.connect({ host: "127.0.0.1", port });
    outer.pipe(inner).pipe(outer);
    for (const [one, other] of [
      [outer, inner],
      [inner, outer],
    ] as const)
      one.on("error", () => other.destroy()).on("close", () => other.destroy());
  });
  await new Promise<void>((done) => server.listen(0, address, done));
  const own = server.address() as net.AddressInfo;
  return { url: `https://${address}:${own.port}`, cert, stop: () => void server.close() };
}
