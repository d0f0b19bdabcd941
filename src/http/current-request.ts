import { AsyncLocalStorage } from "node:async_hooks";

/**
 * The request that the current code serves. It isn't passed through the layers, because only the audit log needs it. Code that runs without a
 * request, such as a schedule or a command, has none.
 */
const requests = new AsyncLocalStorage<Request>();

/** Runs `work`, and everything that it awaits, as part of a request. */
export const withRequest = <T>(request: Request, work: () => T): T => requests.run(request, work);

/** The request that the current code serves; undefined: none. */
export const findCurrentRequest = (): Request | undefined => requests.getStore();
