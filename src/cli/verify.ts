import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { version } from "../../package.json" with { type: "json" };
import type { Config } from "../config/config.ts";
import { createContext } from "../context.ts";
import { closeDb, openDb } from "../db/open.ts";
import { badRequest } from "../errors.ts";
import { isPublicKey } from "../exchange/signature.ts";
import { isVerified, type SignatureState, type Verification, verifyExport } from "../exchange/verification.ts";
import { count } from "../grading/text.ts";
import { createCommandLog } from "../log.ts";
import { exits, print, say, toJson } from "./terminal.ts";

/** Adds `verify`, which proves that an instance exported the reports in a file, and that the reports follow from their sessions. */
export function addVerify(program: Command, configOf: () => Config): void {
  program
    .command("verify <file>")
    .description("Check the signature of an export, and grade the sessions in it again, offline")
    .option("--key <key>", "Public key of the instance, as at its address /.well-known/evald-signing-key")
    .option("--json", "Print the result as JSON")
    .addHelpText(
      "after",
      "\nExit codes: 0 verified, 1 not verified, 2 usage error or damaged file.\n\nExample:\n  evald verify report.jsonl --key ed25519:Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=",
    )
    .action((file: string, { key = null, json }: { key?: string | null; json?: boolean }) => {
      if (key !== null && !isPublicKey(key))
        throw badRequest(
          `Invalid value ${JSON.stringify(key)} for --key: must be ed25519: and 44 characters of base64, as at /.well-known/evald-signing-key of the instance.`,
        );
      const verification = verify(configOf(), file, key);
      explain(verification, key);
      const verdict = isVerified(verification) ? "verified" : "not verified";
      print(json ? toJson(verification, 2) : verdict);
      process.exitCode = isVerified(verification) ? exits.passed : exits.failed;
    });
}

/** Verifies a file in a temporary database, which is deleted afterward. */
function verify(config: Config, file: string, key: string | null): Verification {
  const folder = mkdtempSync(join(tmpdir(), "evald-verify-"));
  try {
    const db = openDb(folder);
    try {
      const log = createCommandLog(config, []);
      return verifyExport(createContext({ db, config, log, agents: {}, baseUrl: () => "" }), file, key);
    } finally {
      closeDb(db);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const signatureTexts: Record<SignatureState, string> = {
  valid: "Signature: valid.",
  invalid: "Signature: invalid. The file was changed after it was exported.",
  missing: "Signature: missing. Set EVALD_SECRET_KEY on the instance and export again.",
  other_key: "Signature: by another key than --key. The file is not from that instance.",
};

function explain(verification: Verification, key: string | null): void {
  const { signature, publicKey, gradings, evald } = verification;
  say(signatureTexts[signature]);
  if (signature === "valid" && key === null)
    say(`Signed with ${publicKey}. Compare it with /.well-known/evald-signing-key of the instance, or pass --key.`);
  const withState = (state: string) => gradings.filter((each) => each.state === state);
  say(`Graded again with the same result: ${count(withState("equal").length, "grading")}.`);
  for (const { slug, fields } of withState("different")) say(`${slug}: different ${fields.join(", ")}.`);
  for (const { slug } of withState("unreadable")) say(`${slug}: the events can't be graded.`);
  for (const { slug, methodology } of withState("unknown_methodology"))
    say(`${slug}: the methodology ${methodology} is unknown here. Set EVALD_METHODOLOGY as on the instance.`);
  const deleted = withState("no_session").length;
  if (deleted > 0) say(`Not graded, because the session was deleted: ${count(deleted, "grading")}.`);
  if (withState("different").length > 0 && evald !== version)
    say(`The reports may be from evald ${evald}, and this is ${version}. Verify them with that version.`);
}
