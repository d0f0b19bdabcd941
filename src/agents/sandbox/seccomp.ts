/** Errors that the kernel returns for denied calls. Programs that can do without io_uring fall back on ENOSYS only. */
const EPERM = 1;
const ENOSYS = 38;
const EAFNOSUPPORT = 97;

type Machine = { audit: number; socket: number; denied: Record<string, number> };

/** Calls that a sandboxed program has no use for, with their numbers, from the kernel's `unistd.h` of each machine. */
const machines: Partial<Record<NodeJS.Architecture, Machine>> = {
  x64: {
    audit: 0xc000003e,
    socket: 41,
    denied: {
      add_key: 248,
      request_key: 249,
      keyctl: 250,
      bpf: 321,
      userfaultfd: 323,
      perf_event_open: 298,
      kexec_load: 246,
      kexec_file_load: 320,
      init_module: 175,
      finit_module: 313,
      quotactl: 179,
      acct: 163,
      open_by_handle_at: 304,
      name_to_handle_at: 303,
      fanotify_init: 300,
      lookup_dcookie: 212,
      syslog: 103,
    },
  },
  arm64: {
    audit: 0xc00000b7,
    socket: 198,
    denied: {
      add_key: 217,
      request_key: 218,
      keyctl: 219,
      bpf: 280,
      userfaultfd: 282,
      perf_event_open: 241,
      kexec_load: 104,
      kexec_file_load: 294,
      init_module: 105,
      finit_module: 273,
      quotactl: 60,
      acct: 89,
      open_by_handle_at: 265,
      name_to_handle_at: 264,
      fanotify_init: 262,
      lookup_dcookie: 18,
      syslog: 116,
    },
  },
};

/** io_uring_setup, io_uring_enter and io_uring_register have the same numbers on every machine. */
const ioUring = [425, 426, 427];
/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. Others reach the host or its kernel past the network namespace, such as AF_VSOCK. */
const families = [1, 2, 10, 16];

// Instructions of classic BPF and return values of seccomp, from linux/bpf_common.h and linux/seccomp.h.
const LOAD = 0x20;
const JUMP_EQUAL = 0x15;
const JUMP_AT_LEAST = 0x35;
const RETURN = 0x06;
const ALLOW = 0x7fff0000;
const errno = (code: number) => 0x00050000 | code;
/** Offsets in `struct seccomp_data`. */
const offsets = { call: 0, machine: 4, firstArgument: 16 };

/**
 * A seccomp filter as bubblewrap reads it. It denies the keyrings of the kernel, which sandboxes share, io_uring, socket families other
 * than those of the sandbox's own network, calls of other machine types, and a few that only administrators need. Null on an unknown machine.
 */
export function seccompFilter(architecture: NodeJS.Architecture = process.arch): Uint8Array<ArrayBuffer> | null {
  const machine = machines[architecture];
  if (!machine) return null;
  const program: [code: number, ifTrue: number, ifFalse: number, value: number][] = [];
  const deny = (call: number, code: number) => program.push([JUMP_EQUAL, 0, 1, call], [RETURN, 0, 0, errno(code)]);
  program.push([LOAD, 0, 0, offsets.machine], [JUMP_EQUAL, 1, 0, machine.audit], [RETURN, 0, 0, errno(ENOSYS)]);
  program.push([LOAD, 0, 0, offsets.call]);
  // The x32 calls of x64 have other numbers.
  program.push([JUMP_AT_LEAST, 0, 1, 0x40000000], [RETURN, 0, 0, errno(ENOSYS)]);
  for (const call of Object.values(machine.denied)) deny(call, EPERM);
  for (const call of ioUring) deny(call, ENOSYS);
  program.push([JUMP_EQUAL, 1, 0, machine.socket], [RETURN, 0, 0, ALLOW], [LOAD, 0, 0, offsets.firstArgument]);
  for (const family of families) program.push([JUMP_EQUAL, 0, 1, family], [RETURN, 0, 0, ALLOW]);
  program.push([RETURN, 0, 0, errno(EAFNOSUPPORT)]);

  const bytes = new DataView(new ArrayBuffer(program.length * 8));
  for (const [i, [code, ifTrue, ifFalse, value]] of program.entries()) {
    bytes.setUint16(i * 8, code, true);
    bytes.setUint8(i * 8 + 2, ifTrue);
    bytes.setUint8(i * 8 + 3, ifFalse);
    bytes.setUint32(i * 8 + 4, value, true);
  }
  return new Uint8Array(bytes.buffer);
}
