/** Errors that the kernel returns for denied calls. Programs that can do without io_uring fall back on ENOSYS only. */
const EPERM = 1;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;

/** The number by which a filter knows each machine type, and the number of its call `socket`. */
const machines = {
  x64: { audit: 0xc000003e, socket: 41 },
  arm64: { audit: 0xc00000b7, socket: 198 },
};

/** Calls that a sandboxed program has no use for, with their numbers from the kernel's `unistd.h` of each machine. */
const deniedCalls = {
  add_key: { x64: 248, arm64: 217 },
  request_key: { x64: 249, arm64: 218 },
  keyctl: { x64: 250, arm64: 219 },
  bpf: { x64: 321, arm64: 280 },
  userfaultfd: { x64: 323, arm64: 282 },
  perf_event_open: { x64: 298, arm64: 241 },
  kexec_load: { x64: 246, arm64: 104 },
  kexec_file_load: { x64: 320, arm64: 294 },
  init_module: { x64: 175, arm64: 105 },
  finit_module: { x64: 313, arm64: 273 },
  quotactl: { x64: 179, arm64: 60 },
  acct: { x64: 163, arm64: 89 },
  open_by_handle_at: { x64: 304, arm64: 265 },
  name_to_handle_at: { x64: 303, arm64: 264 },
  fanotify_init: { x64: 300, arm64: 262 },
  lookup_dcookie: { x64: 212, arm64: 18 },
  syslog: { x64: 103, arm64: 116 },
};

/** io_uring_setup, io_uring_enter and io_uring_register have the same numbers on every machine. */
const ioUring = [425, 426, 427];
/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. Other families, such as AF_VSOCK, reach the host or its kernel past the network namespace. */
const families = [1, 2, 10, 16];

// Instructions of classic BPF and return values of seccomp, from linux/bpf_common.h and linux/seccomp.h.
const LOAD = 0x20;
const JUMP_EQUAL = 0x15;
const JUMP_AT_LEAST = 0x35;
const RETURN = 0x06;
const ALLOW = 0x7fff0000;
const errno = (code: number) => 0x00050000 | code;
/** The x32 calls of x64 have numbers from here on. */
const firstX32Call = 0x40000000;
/** Offsets in `struct seccomp_data`. */
const offsets = { call: 0, machine: 4, firstArgument: 16 };

/**
 * A seccomp filter in the format of bubblewrap. It denies the keyrings of the kernel, which sandboxes share. It also denies io_uring, socket families
 * that the sandbox's own network doesn't use, calls of other machine types, and a few calls that only administrators need. Null on an unknown
 * machine.
 */
export function seccompFilter(architecture: NodeJS.Architecture = process.arch): Uint8Array<ArrayBuffer> | null {
  if (architecture !== "x64" && architecture !== "arm64") return null;
  const { audit, socket } = machines[architecture];
  /** `ifTrue` and `ifFalse`: how many instructions a jump skips. */
  const program: [code: number, ifTrue: number, ifFalse: number, value: number][] = [];
  const deny = (call: number, code: number) => program.push([JUMP_EQUAL, 0, 1, call], [RETURN, 0, 0, errno(code)]);
  program.push([LOAD, 0, 0, offsets.machine], [JUMP_EQUAL, 1, 0, audit], [RETURN, 0, 0, errno(ENOSYS)]);
  program.push([LOAD, 0, 0, offsets.call]);
  program.push([JUMP_AT_LEAST, 0, 1, firstX32Call], [RETURN, 0, 0, errno(ENOSYS)]);
  for (const numbers of Object.values(deniedCalls)) deny(numbers[architecture], EPERM);
  for (const call of ioUring) deny(call, ENOSYS);
  program.push([JUMP_EQUAL, 1, 0, socket], [RETURN, 0, 0, ALLOW], [LOAD, 0, 0, offsets.firstArgument]);
  for (const family of families) program.push([JUMP_EQUAL, 0, 1, family], [RETURN, 0, 0, ALLOW]);
  program.push([RETURN, 0, 0, errno(EAFNOSUPPORT)]);

  // As `struct sock_filter`, little-endian.
  const bytes = new DataView(new ArrayBuffer(program.length * 8));
  for (const [i, [code, ifTrue, ifFalse, value]] of program.entries()) {
    bytes.setUint16(i * 8, code, true);
    bytes.setUint8(i * 8 + 2, ifTrue);
    bytes.setUint8(i * 8 + 3, ifFalse);
    bytes.setUint32(i * 8 + 4, value, true);
  }
  return new Uint8Array(bytes.buffer);
}
