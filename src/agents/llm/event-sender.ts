/** The output of faster commands is reported only in their result. */
const tellMs = 1_000;
const maxChars = 4_000;
const maxTimes = 50;

/**
 * Sends the output of a running command, for live views: at most once a second, in whole lines, and only the end if
 * there is too much. It never splits a line or a multi-line key, because secrets are only removed from text that
 * contains them whole.
 */
export function createTeller(tell: (text: string) => void) {
  const decoder = new TextDecoder();
  let waiting = "";
  let times = 0;
  const timer = setInterval(() => {
    const end = waiting.lastIndexOf("\n") + 1;
    const open = /-----BEGIN [^-]*-----(?![\s\S]*-----END )/.exec(waiting.slice(0, end))?.index ?? end;
    const text = waiting.slice(0, open);
    waiting = waiting.slice(open);
    if (text.trim() === "" || times++ >= maxTimes) return;
    const from = text.length > maxChars ? text.indexOf("\n", text.length - maxChars) + 1 : 0;
    if (from < text.length) tell(text.slice(from).trimEnd());
  }, tellMs);

  return {
    take(bytes: Uint8Array): void {
      waiting += decoder.decode(bytes, { stream: true });
      if (waiting.length > 16 * maxChars)
        waiting = waiting.slice(waiting.indexOf("\n", waiting.length - 16 * maxChars) + 1);
    },
    stop: () => clearInterval(timer),
  };
}
