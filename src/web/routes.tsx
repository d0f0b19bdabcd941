import { Elysia } from "elysia";
import type { Service } from "../service.ts";

export const pageRoutes = (_service: Service) => new Elysia({ name: "pages" });
