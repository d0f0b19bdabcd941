import type { Service } from "../service.ts";

export async function welcome(_service: Service, _ownUrl: string): Promise<void> {}
