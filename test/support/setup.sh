#!/bin/sh
# Installs what the tests need beside the packages of bun.lock: real documentation to evaluate, what the samples of the docs call, what makes a
# disk fail and a clock jump, what commands run in, and R, to which the statistics are held. Needs root on a machine that lacks some of it.
set -eu
missing=""
for package in sqlite3-doc git-doc faketime; do
  dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
for tool in curl jq strace git python3 chromium; do
  command -v "$tool" >/dev/null || missing="$missing $tool"
done
command -v Rscript >/dev/null || missing="$missing r-base-core"
command -v bwrap >/dev/null || missing="$missing bubblewrap"
[ -z "$missing" ] && exit 0
echo "installing$missing"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
