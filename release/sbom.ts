// `bun run sbom`: writes what the executable contains, as CycloneDX 1.6, and the license texts of those packages, beside the executable.
import { join } from "node:path";
import { toNotices, toSbom } from "./bill-of-materials.ts";
import { findCommit } from "./compile.ts";

const dist = join(import.meta.dir, "..", "dist");
await Bun.write(join(dist, "evald.cdx.json"), `${JSON.stringify(await toSbom(findCommit()), null, 2)}\n`);
await Bun.write(join(dist, "THIRD-PARTY-LICENSES.txt"), await toNotices());
