export function listSiteFiles(folder: string): string[];
export function packSiteFiles(folder: string, paths: string[]): Uint8Array<ArrayBuffer>;
