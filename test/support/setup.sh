#!/bin/sh
# Installs what the tests need beside the packages of bun.lock: real documentation to evaluate. Needs root on a machine that lacks it.
set -eu
missing=""
for package in sqlite3-doc git-doc; do
  dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
echo "installing$missing"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
