#!/bin/sh
# Installs evald @VERSION@ for this user: $HOME/.local/bin/evald. It needs no root, and refuses an archive whose digest is not the one below.
#
#   PREFIX         folder to install into, instead of $HOME/.local
#   DOWNLOAD_URL   folder with the files of this release, instead of the one that they were published in
set -eu

version="@VERSION@"
url="${DOWNLOAD_URL:-@URL@}"
prefix="${PREFIX:-$HOME/.local}"

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

# SHA-256 of the archive of a platform; empty for one without a release.
digest_of() {
  case "$1" in
    # @DIGESTS@
    *) ;;
  esac
}

find_platform() {
  case "$(uname -s)" in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    *) fail "there is no release for $(uname -s) here. On Windows, use the zip file." ;;
  esac
  case "$(uname -m)" in
    x86_64 | amd64) cpu=x64 ;;
    aarch64 | arm64) cpu=arm64 ;;
    *) fail "there is no release for $(uname -m)." ;;
  esac
  libc=""
  if [ "$os" = linux ] && { [ -e "/lib/ld-musl-$(uname -m).so.1" ] && [ ! -e /lib64/ld-linux-x86-64.so.2 ] && [ ! -e /lib/ld-linux-aarch64.so.1 ]; }; then
    libc=-musl
  fi
  platform="$os-$cpu$libc"
}

download() {
  if command -v curl >/dev/null; then
    curl -fsSL --retry 3 -o "$2" "$1"
  elif command -v wget >/dev/null; then
    wget -q -O "$2" "$1"
  else
    fail "curl or wget is required."
  fi
}

sha256() {
  if command -v sha256sum >/dev/null; then
    sha256sum "$1" | cut -d ' ' -f 1
  elif command -v shasum >/dev/null; then
    shasum -a 256 "$1" | cut -d ' ' -f 1
  elif command -v openssl >/dev/null; then
    openssl dgst -sha256 -r "$1" | cut -d ' ' -f 1
  else
    fail "sha256sum, shasum or openssl is required."
  fi
}

main() {
  find_platform
  expected=$(digest_of "$platform")
  [ -n "$expected" ] || fail "there is no release for $platform."
  [ -n "$url" ] || fail "set DOWNLOAD_URL to the folder with the files of the release."
  name="evald-$version-$platform"

  mkdir -p "$prefix/bin" "$prefix/share/evald" || fail "can't write to $prefix. Choose another folder with PREFIX."
  # In the same file system, so that the last step replaces the old executable at once.
  folder=$(mktemp -d "$prefix/share/evald/install-XXXXXX")
  trap 'rm -rf "$folder"' EXIT
  trap 'exit 130' INT TERM HUP
  download "$url/$name.tar.gz" "$folder/archive" || fail "can't download $url/$name.tar.gz."
  actual=$(sha256 "$folder/archive")
  [ "$actual" = "$expected" ] || fail "$name.tar.gz is not the file of this release: its SHA-256 is $actual, not $expected. Nothing was installed."
  tar -xzf "$folder/archive" -C "$folder"
  if ! "$folder/$name/evald" --version >"$folder/output" 2>&1; then
    head -n 3 "$folder/output" >&2
    if [ "$libc" = -musl ]; then fail "evald needs libstdc++. On Alpine: apk add libstdc++. Nothing was installed."; fi
    fail "evald can't run on this machine. Nothing was installed."
  fi
  cp "$folder/$name/LICENSE" "$folder/$name/THIRD-PARTY-LICENSES.txt" "$prefix/share/evald/"
  # evald upgrade prints where the next version comes from.
  printf '%s\n' "$url/install.sh" >"$prefix/share/evald/install-url"
  mv -f "$folder/$name/evald" "$prefix/bin/evald"
  echo "Installed evald $version as $prefix/bin/evald."
  case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) echo "Add it to your PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
  esac
}

# On the last line, so that an incomplete download of this script does nothing.
main
