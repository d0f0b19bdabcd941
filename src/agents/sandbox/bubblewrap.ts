import { existsSync, readdirSync, realpathSync, statSync } from "node:fs";

/** A file or folder to show at a path, read-only unless `writable`. */
export type Bind = { from: string; to: string; writable?: boolean };

/** The user nobody. On every Linux it has no privileges without its own user namespace. */
export const nobody = 65534;
const systemFolders = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/** Whether every sandbox shows a path, as a part of the system. */
export const isVisibleInSandboxes = (path: string): boolean =>
  systemFolders.some((folder) => `${path}/`.startsWith(`${folder}/`));

/** Shows a system folder. On most systems, all of these folders but /usr are links into /usr. A link takes less time to make than a mount. */
function showFolder(folder: string): string[] {
  const real = existsSync(folder) ? realpathSync(folder) : folder;
  return real !== folder && isVisibleInSandboxes(real)
    ? ["--symlink", real, folder]
    : ["--ro-bind-try", folder, folder];
}

// All of /etc/ssl must never be shown, because /etc/ssl/private contains keys.
const etcNames =
  "ssl/certs ssl/openssl.cnf pki ca-certificates alternatives ld.so.cache ld.so.conf ld.so.conf.d localtime mime.types fonts chromium chromium.d".split(
    " ",
  );

/** What a sandbox shows of /etc: paths of folders, and of files. */
function listEtc(): { folders: string[]; files: string[] } {
  const names = [...etcNames, ...readdirSync("/etc").filter((name) => name.startsWith("java-"))];
  const paths = names.map((name) => `/etc/${name}`).filter((path) => existsSync(path));
  const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  return { folders: paths.filter((path) => !isFile(path)), files: paths.filter(isFile) };
}

/** The files of /etc that a sandbox shows. */
export const listEtcFiles = (): string[] => listEtc().files;

/** Namespaces of a sandbox, without a network or anything of the machine's environment. */
const ownNamespaces = "--unshare-all --unshare-user --disable-userns --clearenv";

/** File systems in memory of a sandbox: /dev/shm, /tmp, /home and, without a folder for it, /workspace. */
const maxFileSystems = 4;

/** What a sandbox needs in order to start further sandboxes: its namespaces, and an open file descriptor of each file of /etc, by path. */
type NestingView = { namespaces: string; etcFiles: Map<string, number> };

/**
 * Everything that the command sees. Every in-memory file system has a maximum size. Nothing else is writable. The namespaces are `ownNamespaces`,
 * unless the sandbox starts further sandboxes. Such a sandbox gets copies of the files of /etc, because package managers replace these files, and the
 * mount of a replaced file can't be mounted again.
 */
export function fileSystem(binds: Bind[], memoryBytes: number, nesting: NestingView | null = null): string[] {
  const { namespaces, etcFiles } = nesting ?? { namespaces: ownNamespaces, etcFiles: new Map<string, number>() };
  const etc = listEtc();
  const inMemory = (path: string) => [
    "--size",
    String(Math.floor(memoryBytes / maxFileSystems)),
    "--perms",
    "1777",
    "--tmpfs",
    path,
  ];
  return [
    ...namespaces.split(" "),
    ..."--die-with-parent --new-session --cap-drop ALL".split(" "),
    ..."--uid 1000 --gid 1000 --hostname sandbox --proc /proc --dev /dev".split(" "),
    ...[...inMemory("/dev/shm"), "--remount-ro", "/dev"],
    ...systemFolders.flatMap(showFolder),
    ...[...etc.folders, ...etc.files.filter((path) => !etcFiles.has(path))].flatMap((path) => [
      "--ro-bind-try",
      path,
      path,
    ]),
    ...[...etcFiles].flatMap(([path, file]) => ["--perms", "0444", "--file", String(file), path]),
    ...[...inMemory("/tmp"), ...inMemory("/home"), "--dir", "/home/agent"],
    ...(binds.some(({ to }) => to === "/workspace") ? [] : inMemory("/workspace")),
    ...binds.flatMap(({ from, to, writable }) => [writable ? "--bind" : "--ro-bind", from, to]),
  ];
}

const pathForNobody = (position: number) => `/run/${position}`;
/** The same files, at the paths at which `asNobody` makes them accessible. */
export const bindsForNobody = (binds: Bind[]): Bind[] => binds.map((bind, i) => ({ ...bind, from: pathForNobody(i) }));

/**
 * Root in a user namespace created by root can still write to much of /proc/sys, so sandboxes of root run as nobody. In
 * a separate mount namespace, root first makes the sandbox's files accessible to nobody, because their parent folders
 * may be closed to other users.
 */
export function asNobody(bwrap: string, binds: Bind[]): string[] {
  return [
    ...[bwrap, ..."--unshare-pid --die-with-parent --cap-add ALL --dev-bind / / --tmpfs /run".split(" ")],
    ...binds.flatMap(({ from }, i) => ["--bind", from, pathForNobody(i)]),
    ...["--", "setpriv", "--reuid", `${nobody}`, "--regid", `${nobody}`, "--clear-groups", "--"],
  ];
}
