import { dlopen, ptr } from "bun:ffi";
import { lazy } from "../once.ts";

/** From sys/socket.h of Linux. */
const [afUnix, sockDgram, closeOnExec] = [1, 2, 0o2000000];

type Env = Record<string, string | undefined>;

/**
 * Tells systemd the state of the service (sd_notify), such as `READY=1`, if systemd started this process with `Type=notify`. It calls libc, because
 * Node and Bun can't send datagrams to unix sockets. A message that can't be sent is lost, as with sd_notify itself.
 */
export function notifySupervisor(state: string, path = process.env.NOTIFY_SOCKET): void {
  if (!path || process.platform !== "linux") return;
  const libc = openLibc();
  if (!libc) return;
  const { socket, sendto, close } = libc.symbols;
  const family = Buffer.alloc(2);
  family.writeUInt16LE(afUnix);
  // An abstract name starts with a zero byte. systemd writes it as @.
  const address = Buffer.concat([family, Buffer.from(path.replace(/^@/, "\0"))]);
  const message = Buffer.from(state);
  const descriptor = socket(afUnix, sockDgram | closeOnExec, 0);
  if (descriptor < 0) return;
  sendto(descriptor, ptr(message), message.length, 0, ptr(address), address.length);
  close(descriptor);
}

/**
 * Pings the watchdog of systemd (`WatchdogSec`) three times per interval, as long as the event loop runs and `check` doesn't throw. After an interval
 * without a ping, systemd restarts the service. Returns a function that stops the pings. Without a watchdog, that function does nothing.
 */
export function startWatchdog(check: () => void, { WATCHDOG_USEC, WATCHDOG_PID }: Env = process.env): () => void {
  const intervalMs = Number(WATCHDOG_USEC) / 1000;
  // The variables may belong to another process, which started this one.
  if (!(intervalMs > 0) || (WATCHDOG_PID && Number(WATCHDOG_PID) !== process.pid)) return () => {};
  const ping = () => {
    try {
      check();
    } catch {
      return;
    }
    notifySupervisor("WATCHDOG=1");
  };
  const timer = setInterval(ping, intervalMs / 3);
  return () => clearInterval(timer);
}

const openLibc = lazy(() => {
  try {
    // On musl, the loader also accepts this name for its own C library.
    return dlopen("libc.so.6", {
      socket: { args: ["i32", "i32", "i32"], returns: "i32" },
      sendto: { args: ["i32", "ptr", "u64", "i32", "ptr", "u32"], returns: "i64" },
      close: { args: ["i32"], returns: "i32" },
    });
  } catch {
    return null;
  }
});
