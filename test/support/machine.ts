import { appendFileSync, chmodSync, cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { emptyFolder, executable } from "./executable.ts";

/** Runs a command as another user, with the variables that it may keep. */
const sudo = `#!/bin/bash
user=root keep=()
while [[ $1 == -* ]]; do
  case $1 in
    -u) user=$2; shift ;;
    --user=*) user=\${1#*=} ;;
    --preserve-env=*) IFS=, read -ra keep <<< "\${1#*=}" ;;
    *) echo "sudo: $1" >&2; exit 1 ;;
  esac
  shift
done
variables=()
for name in "\${keep[@]}"; do [[ -v $name ]] && variables+=("$name=\${!name}"); done
group=$(id -gn "$user")
exec setpriv --reuid "$user" --regid "$group" --clear-groups env -i PATH="$PATH" "\${variables[@]}" "$@"
`;

/** Does with the unit of evald what systemd would: its user, directory, environment and command. It waits until the service is ready. */
const systemctl = `#!/bin/bash
unit=/etc/systemd/system/evald.service pid=/var/evald.pid
of() { sed -n "s/^$1=//p" $unit; }
stop() {
  [ -f $pid ] || return 0
  kill "$(cat $pid)" && tail --pid="$(cat $pid)" -f /dev/null
  rm $pid
}
start() {
  [ -f $pid ] && return 0
  install -d -m "$(of StateDirectoryMode)" -o "$(of User)" -g "$(of Group)" "/var/lib/$(of StateDirectory)"
  readarray -t variables < <(of Environment; grep -hs '^[A-Z]' "$(of EnvironmentFile | sed s/^-//)")
  cd /
  setsid setpriv --reuid "$(of User)" --regid "$(of Group)" --clear-groups \\
    env -i PATH="$PATH" "\${variables[@]}" $(of ExecStart) < /dev/null >> /var/evald.log 2>&1 &
  echo $! > $pid
  until evald --data /var/lib/evald health > /dev/null; do
    kill -0 "$(cat $pid)" 2> /dev/null || { cat /var/evald.log >&2; exit 1; }
  done
}
action=$1; shift
case "$action $*" in
  daemon-reload*) ;;
  status*) kill -0 "$(cat $pid)" ;;
  stop*) stop ;;
  restart*) stop; start ;;
  start*evald|enable*evald) start ;;
  *) echo "systemctl: $action $*" >&2; exit 1 ;;
esac
`;

/**
 * A machine with its own /etc, /var and /usr/local/bin, on which shell commands run as root. It has the executable, and neither systemd nor sudo:
 * small programs in their place run the unit and change the user. `programs`: others, as shell scripts by name.
 */
export function createMachine(programs: Record<string, string> = {}) {
  const root = emptyFolder();
  chmodSync(root, 0o755);
  const pathOf = (path: string) => join(root, path);
  for (const folder of ["etc/systemd/system", "etc/evald", "var/lib", "var/backups", "var/tmp", "bin"])
    mkdirSync(pathOf(folder), { recursive: true });
  for (const file of [
    "passwd",
    "group",
    "shadow",
    "gshadow",
    "login.defs",
    "nsswitch.conf",
    "hosts",
    "alternatives",
    "ld.so.cache",
  ])
    if (existsSync(`/etc/${file}`)) cpSync(`/etc/${file}`, pathOf(`etc/${file}`), { recursive: true });
  for (const [name, text] of Object.entries({ sudo, systemctl, ...programs })) {
    writeFileSync(pathOf(`bin/${name}`), text);
    chmodSync(pathOf(`bin/${name}`), 0o755);
  }
  writeFileSync(pathOf("bin/evald"), "");
  const binds = [
    ...[
      "--ro-bind",
      "/",
      "/",
      "--dev",
      "/dev",
      "--proc",
      "/proc",
      "--perms",
      "1777",
      "--tmpfs",
      "/tmp",
      "--bind",
      pathOf("etc"),
      "/etc",
    ],
    ...["--bind", pathOf("var"), "/var", "--bind", pathOf("bin"), "/usr/local/bin"],
    ...["--ro-bind", executable, "/usr/local/bin/evald"],
  ];
  return {
    pathOf,
    /** Runs commands, which must all succeed. Returns what they print. */
    async run(commands: string): Promise<string> {
      const shell = ["bash", "-euo", "pipefail", "-c", commands];
      const child = Bun.spawn(["bwrap", ...binds, ...shell], {
        ...{ cwd: "/", env: { PATH: "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" } },
        ...{ stdin: "ignore", stdout: "pipe", stderr: "pipe" },
      });
      const [stdout, stderr, code] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
        child.exited,
      ]);
      if (code !== 0) throw new Error(`${commands}\nexited with ${code}:\n${stdout}${stderr}`);
      return stdout;
    },
    write(path: string, text: string): void {
      mkdirSync(dirname(pathOf(path)), { recursive: true });
      appendFileSync(pathOf(path), text);
    },
  };
}
