// Facts about the build. `release/compile.ts` defines these names; from source they do not exist.
declare const EVALD_COMMIT: string | null;
declare const EVALD_PLATFORM: string;

/** The commit that the executable was built from; null from source, or if files had uncommitted changes. */
export const commit: string | null = typeof EVALD_COMMIT === "undefined" ? null : EVALD_COMMIT;

/** The name of the release for this platform, such as `linux-x64-musl`; null from source. */
export const platform: string | null = typeof EVALD_PLATFORM === "undefined" ? null : EVALD_PLATFORM;

/** Whether this is the executable, which contains its modules, and not Bun with the source files. */
export const isCompiled = platform !== null;
