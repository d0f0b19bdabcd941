#!/bin/sh
# Installs the coding agents that test/slow needs from npm, in the versions that evald is tested with, below ~/.cache/evald-agents.
# With the argument "all", also those that only `bun run agents` tests. Does nothing where all are present.
set -eu

cache="${EVALD_AGENTS_CACHE:-$HOME/.cache/evald-agents}"

install() {
  folder="$cache/$1"
  [ -f "$folder/installed-$3" ] && return 0
  echo "Installing $2@$3"
  rm -rf "$folder"
  mkdir -p "$folder"
  echo '{"private":true}' >"$folder/package.json"
  for pause in 2 10 0; do
    # npx hands its own settings down, and npm rejects this one in a folder of packages.
    if output=$(env -u npm_config_allow_scripts npm install --prefix "$folder" --no-audit --no-fund --loglevel=error "$2@$3" 2>&1); then
      touch "$folder/installed-$3"
      return 0
    fi
    sleep "$pause"
  done
  echo "$output" >&2
  echo "test/support/agents.sh: could not install $2@$3" >&2
  return 1
}

# Qwen Code needs Node.js 22 or later.
install node node 24.9.0
install codex @openai/codex 0.169.0
install gemini @google/gemini-cli 0.61.0
install opencode opencode-ai 1.18.33
install qwen @qwen-code/qwen-code 0.24.4
install pi @mariozechner/pi-coding-agent 0.73.1
[ "${1:-}" = all ] || exit 0
install cline cline 3.0.65
install continue @continuedev/cli 1.5.47
install grok @vibe-kit/grok-cli 0.0.34
install grok-build @xai-official/grok 1.0.41
install kimi @moonshot-ai/kimi-code 2.1.0
