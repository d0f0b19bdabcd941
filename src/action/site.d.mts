export function listSiteFiles(folder: string): string[];
export function packSiteFiles(folder: string, paths: string[]): Uint8Array<ArrayBuffer>;
export function packFiles(files: [path: string, content: Buffer | string][]): Uint8Array<ArrayBuffer>;
