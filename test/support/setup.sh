#!/bin/sh
# Installs the Debian packages that test/slow and test/torture need: Chromium, bubblewrap, ripgrep, strace, libfaketime, R, Redis, shells, promtool and real
# documentation.
# Does nothing where all are present. Installing needs root. Coding agents come from npm: see agents.sh.
set -eu

"$(dirname "$0")/agents.sh"

missing=""
for package in sqlite3-doc git-doc faketime python-flask-doc python-click-doc python-jinja2-doc python-requests-doc \
  python-peewee-doc python-bottle-doc python-attr-doc redis-server; do
  dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
for tool in curl jq strace git python3 chromium zsh fish minisign; do
  command -v "$tool" >/dev/null || missing="$missing $tool"
done
command -v Rscript >/dev/null || missing="$missing r-base-core"
command -v bwrap >/dev/null || missing="$missing bubblewrap"
# OpenCode loads skills with it.
command -v rg >/dev/null || missing="$missing ripgrep"
command -v promtool >/dev/null || promtool=missing
[ -z "$missing${promtool:-}" ] && exit 0

fail() {
  echo "test/support/setup.sh: $1" >&2
  exit 1
}
command -v apt-get >/dev/null || fail "missing:$missing. Install them: there is no apt-get to do so."
[ "$(id -u)" = 0 ] || fail "missing:$missing. Run it as root, or: sudo apt-get install$missing"

# Runs a command up to three times, for a package mirror that is busy; shows what it printed only if it failed each time.
retry() {
  for pause in 2 10 0; do
    if output=$("$@" 2>&1); then return 0; fi
    sleep "$pause"
  done
  echo "$output" >&2
  fail "missing:$missing. Failed: $*"
}
echo "Installing:$missing${promtool:+ promtool}"
export DEBIAN_FRONTEND=noninteractive
retry apt-get update -qq -o Acquire::Retries=3
# Only one program of the package, which would install and start a server.
if [ -n "${promtool:-}" ]; then
  folder=$(mktemp -d)
  (cd "$folder" && retry apt-get download -qq prometheus && dpkg-deb --fsys-tarfile prometheus_*.deb | tar -xO ./usr/bin/promtool >promtool)
  install -m 755 "$folder/promtool" /usr/local/bin/promtool
  rm -rf "$folder"
fi
[ -z "$missing" ] && exit 0
# shellcheck disable=SC2086 # one argument a package
retry apt-get install -y -qq --no-install-recommends -o Acquire::Retries=3 $missing
