import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import manifest from "../package.json" with { type: "json" };
import { settingTable } from "../src/config/config.ts";

type Service = {
  image: string;
  environment?: Record<string, string>;
  security_opt?: string[];
  ulimits?: Record<string, number>;
  volumes?: string[];
  tmpfs?: string[];
  read_only?: boolean;
};

const folder = join(import.meta.dir, "..", "release", "image");
const text = (name: string) => readFileSync(join(folder, name), "utf8");
const servicesOf = (name: string) => (Bun.YAML.parse(text(name)) as { services: Record<string, Service> }).services;
const services = [servicesOf("compose.yaml"), servicesOf("compose.workers.yaml")];
/** Those that run evald, with all options. */
const ours = services.flatMap((each) => Object.values(each)).filter(({ image }) => image?.startsWith("evald:"));

test("the Compose files use this version, settings that exist, and one writable folder for data", () => {
  const names = settingTable.map(({ name }) => name);
  const used = services
    .flatMap((each) => Object.values(each))
    .flatMap(({ environment = {} }) => Object.keys(environment));
  expect(used.filter((name) => name !== "DOMAIN" && !names.includes(name))).toEqual([]);
  for (const { image, read_only: isReadOnly, volumes = [], tmpfs = [] } of ours) {
    expect(image).toBe(`evald:\${IMAGE_TAG:-${manifest.version}}`);
    expect(isReadOnly).toBe(true);
    const folders = [...volumes, ...tmpfs].map((mount) => mount.match(/\/(tmp|var\/lib\/evald)/)?.[0]).sort();
    expect(folders).toEqual(["/tmp", "/var/lib/evald"]);
  }
  expect(ours).toHaveLength(2);
});

test("containers that run agents have what the sandbox needs, in the form that Compose reads", () => {
  for (const { security_opt: options, ulimits } of ours) {
    expect(options).toEqual([
      "no-new-privileges=true",
      "seccomp=seccomp.json",
      "apparmor=unconfined",
      "systempaths=unconfined",
    ]);
    expect(ulimits?.nofile).toBeGreaterThanOrEqual(8192);
  }
});

test("the seccomp profile allows the calls of bubblewrap without conditions, and refuses others", () => {
  type Rule = { names: string[]; action: string; args?: object[]; includes?: object };
  const profile = JSON.parse(text("seccomp.json")) as { defaultAction: string; syscalls: Rule[] };
  const rulesOf = (call: string) => profile.syscalls.filter(({ names }) => names.includes(call));
  for (const call of ["clone", "clone3", "unshare", "mount", "umount2", "pivot_root", "setns", "sethostname"])
    expect([call, rulesOf(call)]).toEqual([call, [expect.objectContaining({ action: "SCMP_ACT_ALLOW" })]]);
  expect(profile.defaultAction).toBe("SCMP_ACT_ERRNO");
  for (const call of ["bpf", "kexec_load", "init_module", "io_uring_setup"])
    expect(rulesOf(call).filter(({ action, includes }) => action === "SCMP_ACT_ALLOW" && !includes)).toEqual([]);
});
