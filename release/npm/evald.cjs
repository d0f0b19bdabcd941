#!/usr/bin/env node
// Starts the executable of evald for this platform, which npm installs as a package of its own. Written for any version of Node.js, to tell
// old ones what is missing.
"use strict";
const childProcess = require("child_process");
const crypto = require("crypto");
const fs = require("fs");

const oldest = 18;

function fail(message) {
  console.error(`evald: ${message}`);
  process.exit(1);
}

function isMusl() {
  return process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
}

/** SHA-256 of a file as hex, read in parts. */
function digestOf(file) {
  const hash = crypto.createHash("sha256");
  const part = Buffer.allocUnsafe(1 << 20);
  const descriptor = fs.openSync(file, "r");
  for (let size = fs.readSync(descriptor, part); size > 0; size = fs.readSync(descriptor, part))
    hash.update(part.subarray(0, size));
  fs.closeSync(descriptor);
  return hash.digest("hex");
}

/** Compares the executable with the digest of this version, once for each file: a note beside it says which one was compared. */
function verify(file, digest) {
  const stat = fs.statSync(file);
  const state = [digest, stat.size, stat.mtimeMs, stat.ctimeMs, stat.ino].join(" ");
  const note = `${file}.verified`;
  try {
    if (fs.readFileSync(note, "utf8") === state) return;
  } catch (_) {
    // It was not compared yet.
  }
  if (digestOf(file) !== digest)
    fail(`${file} is damaged: its digest is not the one of this version. Remove the package and install evald again.`);
  try {
    fs.writeFileSync(note, state);
  } catch (_) {
    // The folder is read-only, so each start compares.
  }
}

function start(file, musl) {
  const child = childProcess.spawn(file, process.argv.slice(2), { stdio: "inherit" });
  // A terminal sends these signals to the child too, and evald takes a second one as a demand to stop at once.
  const hasTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
  ["SIGINT", "SIGTERM", "SIGHUP"].forEach((signal) => {
    process.on(signal, () => {
      if (signal === "SIGTERM" || !hasTerminal) child.kill(signal);
    });
  });
  child.on("error", (error) => {
    fail(`${file} can't run: ${error.message}`);
  });
  child.on("exit", (code, signal) => {
    if (code === 127 && musl) console.error("evald: It needs libstdc++ on this system. On Alpine: apk add libstdc++");
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

function main() {
  const version = Number(process.versions.node.split(".")[0]);
  if (version < oldest) fail(`Node.js ${oldest} or newer is required, but this is ${process.versions.node}.`);
  const musl = isMusl();
  const os = process.platform === "win32" ? "windows" : process.platform;
  const platform = `${os}-${process.arch}${musl ? "-musl" : ""}`;
  const digest = require("./digests.json")[platform];
  if (!digest) fail(`There is no release for ${platform}. Run it from source instead.`);
  const name = `@evald/${platform}`;
  let file;
  try {
    file = require.resolve(`${name}/bin/evald${os === "windows" ? ".exe" : ""}`);
  } catch (_) {
    fail(
      `The package ${name}, which holds the program for this platform, is not installed. Install evald again on this machine, without --omit=optional, --no-optional or a copied node_modules folder.`,
    );
  }
  verify(file, digest);
  start(file, musl);
}

main();
