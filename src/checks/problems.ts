import { connectionProblems, redisProblems } from "./connection-problems.ts";
import type { Problem } from "./problem.ts";

const takeOwnership = 'sudo chown -R "$(id -un)" {subject} && chmod -R u+rwX {subject}';
const seeSandbox = "Do what the detail says. Set up the sandbox, on the page Operations, explains each option.";

const dataProblems = {
  data_directory_invalid: {
    state: "failed",
    title: "The data directory is not a directory",
    remedy: "Choose another one with --data or EVALD_DATA_DIR.",
  },
  data_directory_read_only: {
    state: "failed",
    title: "No write access to the data directory",
    remedy: "As the user of the service, run the command. If the disk is mounted read-only, remount it.",
    command: takeOwnership,
  },
  data_directory_visible: {
    state: "failed",
    title: "Sandboxes show the data directory",
    remedy: "Move the data to a directory outside of /usr, and choose it with --data or EVALD_DATA_DIR.",
  },
  data_exposed: {
    state: "failed",
    title: "Other users of this machine can read or change the data",
    remedy: "Remove their access with the command.",
    command: "chmod -R go-rwx {subject}",
  },
  database_read_only: {
    state: "failed",
    title: "No write access to the database",
    remedy: "As the user of the service, run the command.",
    command: takeOwnership,
  },
  disk_full: {
    state: "failed",
    title: "Less than 0.5 GiB of free space",
    remedy:
      "Delete files that don’t belong to evald, or move backups to another disk. Then lower EVALD_KEEP_SESSIONS_DAYS and restart evald. The command shows the largest files.",
    command: "du -ah {subject} | sort -rh | head",
  },
  disk_filling: {
    state: "warning",
    title: "The disk will be full within two weeks",
    remedy:
      "Free some space, enlarge the disk, or lower EVALD_KEEP_SESSIONS_DAYS and restart evald. The command shows the largest files.",
    command: "du -ah {subject} | sort -rh | head",
  },
  database_damaged: {
    state: "failed",
    title: "The database is damaged",
    remedy: "Stop the service and restore the newest backup.",
    command: "evald --data {subject} restore BACKUP",
  },
  database_newer: {
    state: "failed",
    title: "A newer version of evald wrote the database",
    remedy: "Install that version or a later one, or restore a backup of this version.",
    command: "evald --version",
  },
  database_unknown: {
    state: "failed",
    title: "A development version of evald wrote the database",
    remedy: "Use that version, or choose an empty data directory with --data.",
  },
  database_unreadable: {
    state: "failed",
    title: "The database can’t be opened",
    remedy: "Check the disk and the owner of the files.",
    command: "ls -l {subject}",
  },
  secret_key_missing: {
    state: "failed",
    isForInbox: false,
    title: "EVALD_SECRET_KEY is missing",
    remedy:
      "Set EVALD_SECRET_KEY to the previous key and restart evald. If it is lost, set a new one from the command, and store model keys and destinations again.",
    command: "openssl rand -base64 32",
  },
  secret_key_changed: {
    state: "failed",
    isForInbox: false,
    title: "EVALD_SECRET_KEY has changed",
    remedy:
      "Set EVALD_SECRET_KEY to the previous key and restart evald. If it is lost, store model keys and destinations again.",
  },
  backup_failing: {
    state: "failed",
    title: "Scheduled backups fail or are late",
    remedy: "Correct what the detail names, then back up once to see whether it works.",
    command: "evald --data {subject} backups run",
    isForInbox: false,
  },
  backup_missing: {
    state: "warning",
    title: "There is no backup",
    remedy: "Back up now, and then every day.",
    command: 'evald --data {subject} backup "evald-$(date +%F).backup"',
  },
  backup_late: {
    state: "warning",
    title: "The last backup is old",
    remedy: "Back up now, and check why the regular backup didn’t run.",
    command: 'evald --data {subject} backup "evald-$(date +%F).backup"',
  },
} as const satisfies Record<string, Problem>;

const machineProblems = {
  clock_behind: {
    state: "failed",
    title: "The clock is behind",
    remedy: "Set the clock of the machine, and let it follow a time server.",
    command: "sudo timedatectl set-ntp true",
  },
  clock_differs: {
    state: "failed",
    title: "The clock differs from that of another server",
    remedy: "Compare both with another clock. If this machine is wrong, let it follow a time server.",
    command: "sudo timedatectl set-ntp true",
  },
  clock_jumped: {
    state: "warning",
    title: "The clock jumped",
    remedy: "If the machine did not sleep, let its clock follow a time server. The command shows whether it does.",
    command: "timedatectl status",
  },
  time_zone_unknown: {
    state: "failed",
    title: "Unknown time zone",
    remedy:
      "Install a version of evald that knows it, or choose another time zone in the settings of the organization.",
  },
  open_files_low: {
    state: "warning",
    title: "The limit for open files is low",
    remedy:
      "Set LimitNOFILE=65536 in the systemd unit, start the container with --ulimit nofile=65536, or run the command in the shell before evald. evald itself raises its limit as far as it may.",
    command: "sudo prlimit --pid $$ --nofile=65536",
  },
  port_taken: {
    state: "failed",
    title: "The port is in use",
    remedy: "End the other program, which the command shows, or set EVALD_PORT or --port to a free port.",
    command: "sudo ss -ltnp sport = :{subject}",
  },
  port_forbidden: {
    state: "failed",
    title: "This user may not listen on the port",
    remedy: "Set EVALD_PORT or --port to a port above 1023, and put a proxy in front of evald.",
  },
  host_unavailable: {
    state: "failed",
    title: "The machine doesn’t have the address to listen on",
    remedy: "Set EVALD_HOST or --host to 127.0.0.1, or to 0.0.0.0 for all addresses of this machine.",
    command: "ip address",
  },
  service_not_ready: {
    state: "failed",
    title: "The service isn’t ready",
    remedy: "Fix the cause that the detail names. The log of the service has more about it.",
    command: "sudo journalctl --unit=evald --lines=50",
  },
  service_silent: {
    state: "failed",
    title: "The service doesn’t answer",
    remedy: "Read the log of the service, then restart it.",
    command: "sudo systemctl restart evald",
  },
  proxy_unreachable: {
    state: "failed",
    title: "The HTTP proxy can’t be reached",
    remedy: "Start the proxy, or correct or remove the variable, and restart evald.",
  },
  authority_unreadable: {
    state: "failed",
    title: "The file of certificate authorities can’t be read",
    remedy: "Correct the path in the variable, let the user of the service read the file, and restart evald.",
    command: "ls -l {subject}",
  },
  authority_invalid: {
    state: "failed",
    title: "The file of certificate authorities has no certificate",
    remedy: "Store the certificates in PEM format, and restart evald. The command shows the first one.",
    command: "openssl x509 -in {subject} -noout -subject -enddate",
  },
  authority_expired: {
    state: "warning",
    title: "A certificate authority has expired",
    remedy: "Replace its certificate in the file, and restart evald. The command shows the first one.",
    command: "openssl x509 -in {subject} -noout -subject -enddate",
  },
} as const satisfies Record<string, Problem>;

const agentProblems = {
  sandbox_missing: { state: "warning", title: "Agents can’t run commands", remedy: seeSandbox },
  page_sandbox_missing: { state: "warning", title: "Agents parse pages without a sandbox", remedy: seeSandbox },
  workspace_on_disk: {
    state: "warning",
    title: "Workspaces are on disk, where their size is only monitored",
    remedy: seeSandbox,
    isForInbox: false,
  },
  cpu_not_grouped: {
    state: "warning",
    title: "Sessions have a lower priority instead of a control group each",
    remedy:
      "The service may respond more slowly. Run evald as root, or with Delegate=yes and DelegateSubgroup= in its systemd unit.",
    isForInbox: false,
  },
  browser_missing: {
    state: "warning",
    title: "Agents can’t use a browser",
    remedy: "Do what the detail says.",
    isForInbox: false,
  },
  program_missing: {
    state: "warning",
    title: "Programs for sessions are missing",
    remedy: "Install them for all users, so that they are in /usr/local/bin, /usr/bin or /bin.",
    isForInbox: false,
  },
  agent_incomplete: {
    state: "warning",
    title: "An agent lacks something",
    remedy: "Do what the detail says.",
    isForInbox: false,
  },
} as const satisfies Record<string, Problem>;

/** Every cause of a finding that isn't ok, with what to do about it. */
const problems = {
  ...dataProblems,
  ...machineProblems,
  ...connectionProblems,
  ...redisProblems,
  ...agentProblems,
  check_failed: {
    state: "warning",
    title: "The check itself failed",
    remedy: "Run it again. If it fails again, report it with its detail.",
    command: "evald doctor",
  },
} as const satisfies Record<string, Problem>;

export type Cause = keyof typeof problems;
export const causes = Object.keys(problems) as Cause[];

/** What to do about a cause. */
export const problemOf = (cause: Cause): Problem => problems[cause];
