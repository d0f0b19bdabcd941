/** The output of faster commands is reported only in their result. */
const reportMs = 1_000;
const maxChars = 4_000;
const maxReports = 50;
/** Output that waits for its line or key to end is cut at its start. */
const maxPendingChars = 64_000;

/**
 * Sends the output of a running command, for live views: at most once a second, in whole lines, and only the end if
 * there is too much. It never splits a line or a multi-line key, because secrets are only removed from text that
 * contains them whole.
 */
export function createLiveOutput(onText: (text: string) => void) {
  const decoder = new TextDecoder();
  let pending = "";
  let reportCount = 0;
  const timer = setInterval(() => {
    const end = pending.lastIndexOf("\n") + 1;
    const openKeyIndex = /-----BEGIN [^-]*-----(?![\s\S]*-----END )/.exec(pending.slice(0, end))?.index ?? end;
    const text = pending.slice(0, openKeyIndex);
    pending = pending.slice(openKeyIndex);
    if (text.trim() === "" || reportCount++ >= maxReports) return;
    const from = text.length > maxChars ? text.indexOf("\n", text.length - maxChars) + 1 : 0;
    if (from < text.length) onText(text.slice(from).trimEnd());
  }, reportMs);

  return {
    push(bytes: Uint8Array): void {
      pending += decoder.decode(bytes, { stream: true });
      if (pending.length > maxPendingChars)
        pending = pending.slice(pending.indexOf("\n", pending.length - maxPendingChars) + 1);
    },
    stop: () => clearInterval(timer),
  };
}
