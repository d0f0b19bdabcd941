/** The output of faster commands is reported only in their result. */
const reportMs = 1_000;
const maxChars = 4_000;
const maxReports = 50;

/**
 * Sends the output of a running command, for live views: at most once a second, in whole lines, and only the end if
 * there is too much. It never splits a line or a multi-line key, because secrets are only removed from text that
 * contains them whole.
 */
export function createLiveOutput(onText: (text: string) => void) {
  const decoder = new TextDecoder();
  let waiting = "";
  let reports = 0;
  const timer = setInterval(() => {
    const end = waiting.lastIndexOf("\n") + 1;
    const openKey = /-----BEGIN [^-]*-----(?![\s\S]*-----END )/.exec(waiting.slice(0, end))?.index ?? end;
    const text = waiting.slice(0, openKey);
    waiting = waiting.slice(openKey);
    if (text.trim() === "" || reports++ >= maxReports) return;
    const from = text.length > maxChars ? text.indexOf("\n", text.length - maxChars) + 1 : 0;
    if (from < text.length) onText(text.slice(from).trimEnd());
  }, reportMs);

  return {
    push(bytes: Uint8Array): void {
      waiting += decoder.decode(bytes, { stream: true });
      if (waiting.length > 16 * maxChars)
        waiting = waiting.slice(waiting.indexOf("\n", waiting.length - 16 * maxChars) + 1);
    },
    stop: () => clearInterval(timer),
  };
}
