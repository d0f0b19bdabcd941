import { createGuard } from "../src/net/guarded.ts";
import { testGuard } from "./support/guard-cases.ts";

testGuard(createGuard);
