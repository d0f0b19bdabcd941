type PollOptions = {
  /** Does what is due. Returns the delay until the next check, in milliseconds. */
  check: () => Promise<number>;
  /** Called with errors of a check. After an error, the next check follows after `retryMs`. */
  onError: (error: unknown) => void;
  retryMs: number;
};

/** Checks for work repeatedly, one check at a time. It checks immediately when woken, otherwise after the delay that the last check returned. */
export function createPoll({ check, onError, retryMs }: PollOptions) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let current: Promise<void> | null = null;
  /** Whether it was woken during a check. That check may have missed the new work. */
  let isWokenAgain = false;
  let isServing = false;

  const checkOnce = async (): Promise<number> => {
    try {
      return await check();
    } catch (error) {
      onError(error);
      return retryMs;
    }
  };

  /** Checks now; concurrent calls share one check. */
  function wake(): void {
    if (!isServing) return;
    if (current) {
      isWokenAgain = true;
      return;
    }
    clearTimeout(timer);
    isWokenAgain = false;
    current = checkOnce().then((waitMs) => {
      current = null;
      if (isWokenAgain) wake();
      else if (isServing) timer = setTimeout(wake, waitMs);
    });
  }

  return {
    wake,
    start(): void {
      isServing = true;
      wake();
    },
    /** Starts no more checks. Resolves when the one in progress has finished. */
    async stop(): Promise<void> {
      isServing = false;
      clearTimeout(timer);
      await current;
    },
  };
}
