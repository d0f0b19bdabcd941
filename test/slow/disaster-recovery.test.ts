import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { buildExecutable } from "../support/executable.ts";
import { createMachine } from "../support/machine.ts";
import { startStore } from "../support/s3.ts";

// The commands and files of the docs, word for word, on machines without systemd.

const isTried = process.getuid?.() === 0 && Bun.which("bwrap") !== null && Bun.which("setpriv") !== null;

const docs = join(import.meta.dir, "../../src/web/docs");

/** The code blocks of a language below a heading of a docs page. */
function blocksOf(page: string, heading: string, language: string): string[] {
  const text = readFileSync(join(docs, `${page}.md`), "utf8");
  const [, section] = text.split(new RegExp(`^##+ ${heading}$`, "m"));
  if (section === undefined) throw new Error(`${page} has no section ${heading}.`);
  const [own = ""] = section.split(/^##+ /m);
  return [...own.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].flatMap(([, kind, code = ""]) =>
    kind === language ? code : [],
  );
}

/** Replaces what the docs leave to the reader. */
const filled = (text: string, values: Record<string, string>): string => {
  let result = text;
  for (const [placeholder, value] of Object.entries(values)) {
    expect(text).toContain(placeholder);
    result = result.replaceAll(placeholder, value);
  }
  return result;
};

const get = <T>(all: T[], index: number): T => {
  const one = all[index];
  if (one === undefined) throw new Error(`There are only ${all.length} blocks.`);
  return one;
};

let store: Awaited<ReturnType<typeof startStore>>;
const machines: ReturnType<typeof createMachine>[] = [];

beforeAll(async () => {
  if (!isTried) return;
  await buildExecutable();
  store = await startStore("acme-backups");
}, 300_000);

afterAll(async () => {
  await Promise.all(machines.map((machine) => machine.run("systemctl stop evald")));
  for (const machine of machines) rmSync(machine.pathOf(""), { recursive: true });
  await store?.close();
}, 60_000);

/** A machine on which evald was installed as the docs say. `env`: its environment file. */
function install(env: string, programs: Record<string, string> = {}) {
  const machine = createMachine(programs);
  machines.push(machine);
  machine.write(
    "etc/systemd/system/evald.service",
    get(blocksOf("operations", "Install as a system service", "ini"), 0),
  );
  machine.write("etc/evald/evald.env", env);
  return machine;
}

const settings = "EVALD_PORT=0\nEVALD_WELCOME=0\n";
const secretKey = `EVALD_SECRET_KEY=${Buffer.alloc(32, 7).toString("base64")}\n`;

/** Everything of a machine that a restore must bring back. */
function rowsOf({ pathOf }: ReturnType<typeof createMachine>) {
  const db = new Database(pathOf("var/lib/evald/evald.db"), { readonly: true });
  const all = (table: string) => db.query(`select * from ${table} order by id`).values();
  try {
    return { orgs: all("orgs"), prompts: all("prompts"), keys: all("api_keys") };
  } finally {
    db.close();
  }
}

const asEvald = "sudo -u evald evald --data /var/lib/evald";
const newestOf = (list: string) =>
  list
    .trim()
    .split("\n")
    .map((line) => line.split(/\s{2,}/)[0] ?? "")
    .at(-1) ?? "";

test.skipIf(!isTried)(
  "a service that was installed and backed up as the docs say is recovered on other machines as the docs say",
  async () => {
    const first = install(settings + secretKey);
    const [, start = "", create = ""] = blocksOf("operations", "Install as a system service", "bash");
    await first.run(start);
    await first.run(create);

    // Scheduled backups to a directory, then to a store.
    const [toDirectory = "", toStore = ""] = blocksOf("operations", "Schedule backups", "ini");
    const [restart = "", listAndRun = ""] = blocksOf("operations", "Schedule backups", "bash");
    first.write("etc/evald/evald.env", toDirectory);
    await first.run(restart);
    expect(await first.run(listAndRun)).toContain("/var/backups/evald/evald-20");
    const credentials = { "AKIA...": "S3RVER", "SECRET_ACCESS_KEY=...": "SECRET_ACCESS_KEY=S3RVER" };
    const storeSettings = filled(toStore, { ...credentials, "https://s3.example.com": store.endpoint });
    await first.run("sed -i /^EVALD_BACKUP_TO/d /etc/evald/evald.env");
    first.write("etc/evald/evald.env", storeSettings);
    await first.run("systemctl restart evald");
    await first.run(`${asEvald} prompt create --text 'See https://docs.test/'`);
    expect(await first.run(listAndRun)).toContain("s3://acme-backups/evald/evald-20");
    const original = rowsOf(first);
    expect([original.orgs.length, original.prompts.length, original.keys.length]).toEqual([1, 1, 1]);

    // A backup by hand, and its checksums.
    const [byHand = "", check = ""] = blocksOf("operations", "Back up", "bash");
    await first.run(byHand);
    const [backup = ""] = (await first.run("ls /var/lib/evald/*.backup")).trim().split("\n");
    const sums = (await first.run(`cp ${backup} /tmp/evald.backup; cd /tmp; ${check}`)).match(/\b[0-9a-f]{64}\b/g);
    expect(sums).toHaveLength(2);
    expect(sums?.[0]).toBe(sums?.[1] as string);
    const lost = rowsOf(first);

    // Restored in place.
    const [inPlace = "", fromStore = ""] = blocksOf("operations", "Restore", "bash");
    await first.run(`${asEvald} prompt create --text 'See https://lost.test/'`);
    await first.run(filled(inPlace, { "/var/lib/evald/evald-2026-11-20.backup": backup }));
    expect(rowsOf(first)).toEqual(lost);
    await first.run("systemctl stop evald");

    // On a new machine, from the store.
    const second = install(settings + secretKey + storeSettings);
    const exports = `export AWS_ENDPOINT_URL=${store.endpoint}\n`;
    // The service starts before, with an empty database.
    await second.run(start);
    const list = await second.run(
      exports +
        filled(get(fromStore.split("sudo systemctl stop"), 0), { "=AKIA...": "=S3RVER", "KEY=...": "KEY=S3RVER" }),
    );
    await second.run(
      exports +
        filled(fromStore, {
          "=AKIA...": "=S3RVER",
          "KEY=...": "KEY=S3RVER",
          "s3://acme-backups/evald/evald-2026-11-20T03-00-00Z.backup": newestOf(list),
        }),
    );
    expect(rowsOf(second)).toEqual(original);
    await second.run("systemctl stop evald");

    // On a new machine, from a file, into an empty directory.
    const third = install(settings + secretKey);
    await third.run(get(start.split("\n"), 0));
    third.write("var/backups/evald.backup", "");
    Bun.spawnSync(["cp", first.pathOf(backup), third.pathOf("var/backups/evald.backup")]);
    await third.run("chmod 644 /var/backups/evald.backup");
    await third.run(get(blocksOf("growing", "From a backup", "bash"), 0));
    expect(rowsOf(third)).toEqual(lost);
  },
  300_000,
);

/** Writes what Litestream would: the database. */
const litestream = `#!/bin/bash
[[ "$1 $2 $4" == "restore -config -o" ]] && cp /var/replica.db "$5"
`;

test.skipIf(!isTried)(
  "what Litestream restored becomes the database as the docs say",
  async () => {
    const machine = install(settings, { litestream });
    const [, start = "", create = ""] = blocksOf("operations", "Install as a system service", "bash");
    await machine.run(start);
    await machine.run(create);
    await machine.run("systemctl stop evald; install -m 644 /var/lib/evald/evald.db /var/replica.db");
    const original = rowsOf(machine);
    await machine.run("rm /var/lib/evald/evald.db");
    const restore = blocksOf("growing", "From Litestream", "bash").at(-1) ?? "";
    await machine.run(restore);
    expect(rowsOf(machine)).toEqual(original);
    expect(await machine.run("ls /var/lib/evald")).not.toContain("litestream");
  },
  300_000,
);
