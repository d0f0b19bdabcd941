type Options = {
  /** Does what is due. Answers with the time until the next look, in milliseconds. */
  look: () => Promise<number>;
  /** Hears what a look threw; the next one comes after `retryMs`. */
  onError: (error: unknown) => void;
  retryMs: number;
};

/** Looks for work again and again, one look at a time: at once when it is woken, otherwise after the wait that the last look asked for. */
export function createPoll({ look, onError, retryMs }: Options) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let current: Promise<void> | null = null;
  /** Whether it was woken while it looked: what came too late for that look is found by another. */
  let again = false;
  let isServing = false;

  const lookOnce = async (): Promise<number> => {
    try {
      return await look();
    } catch (error) {
      onError(error);
      return retryMs;
    }
  };

  /** Looks now; many calls of one moment are one look. */
  function wake(): void {
    if (!isServing) return;
    if (current) {
      again = true;
      return;
    }
    clearTimeout(timer);
    again = false;
    current = lookOnce().then((waitMs) => {
      current = null;
      if (again) wake();
      else if (isServing) timer = setTimeout(wake, waitMs);
    });
  }

  return {
    wake,
    start(): void {
      isServing = true;
      wake();
    },
    /** Looks no more, from this call on. Resolved when the look in progress has ended. */
    async stop(): Promise<void> {
      isServing = false;
      clearTimeout(timer);
      await current;
    },
  };
}
