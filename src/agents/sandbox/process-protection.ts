import { dlopen } from "bun:ffi";

/** From linux/prctl.h. */
const prSetDumpable = 4;

/**
 * Keeps other processes of this user from reading the memory and the environment of this process, and from tracing it. Programs that it starts don't
 * inherit this protection. Afterwards, this process can't open its own files in /proc for writing either. Throws if the kernel refuses.
 */
export function protectProcess(): void {
  // musl's loader also accepts this name for its own C library.
  const { symbols, close } = dlopen("libc.so.6", {
    prctl: { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" },
  });
  const result = symbols.prctl(prSetDumpable, 0n, 0n, 0n, 0n);
  close();
  if (result !== 0) throw new Error("The process can't be protected from others.");
}
