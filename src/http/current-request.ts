import { AsyncLocalStorage } from "node:async_hooks";

/**
 * The request that the running code serves. It is not passed through the layers: only the audit log asks for it. Whatever runs without a
 * request, such as a schedule or a command, has none.
 */
const requests = new AsyncLocalStorage<Request>();

/** Calls `work`, and everything that it awaits, as a part of a request. */
export const withRequest = <T>(request: Request, work: () => T): T => requests.run(request, work);

/** The request that the running code serves; undefined: none. */
export const findCurrentRequest = (): Request | undefined => requests.getStore();
