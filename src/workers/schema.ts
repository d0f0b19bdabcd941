import { type Static, Type } from "@sinclair/typebox";
import { workerStates } from "../places/messages.ts";
import { Id, Nullable, OneOf, Time } from "../schema.ts";

const Capability = Type.Object({
  isAvailable: Type.Boolean(),
  detail: Type.String({ description: "What was found, or how to install it" }),
});

export const Worker = Type.Object(
  {
    id: Id,
    name: Type.String({ description: "Name of its credential, else its host name" }),
    credential: Nullable(Type.String({ description: "Name of its credential; null: it uses that of the service" })),
    state: OneOf(
      workerStates,
      "ready; not_ready: takes no sessions because of its problem; draining: finishes its sessions, then ends; refused: its version is not that of the service",
    ),
    problem: Nullable(
      Type.String({ description: "Why it can't run sessions, such as a gateway that it can't reach; null: it can" }),
    ),
    version: Type.String({ description: "Version of evald" }),
    slots: Type.Integer({ minimum: 1, description: "Maximum concurrent sessions" }),
    runIds: Type.Array(Id, { description: "Runs whose sessions it has" }),
    labels: Type.Array(Type.String()),
    agents: Type.Array(Type.Object({ id: Type.String(), version: Type.String() })),
    sandbox: Capability,
    browser: Capability,
    memoryBytes: Type.Integer({ minimum: 0 }),
    freeMemoryBytes: Type.Integer({ minimum: 0 }),
    cpus: Type.Integer({ minimum: 1 }),
    busyCpus: Type.Number({ minimum: 0, description: "Load average of the last minute" }),
    connectedAt: Time,
    lastSeenAt: Time,
  },
  {
    title: "Worker",
    examples: [
      {
        id: "3f0c2a9e-6d0b-4a53-9f0e-2a8f1c1d7b10",
        name: "worker-1",
        credential: "worker-1",
        state: "ready",
        problem: null,
        version: "1.0.0",
        slots: 4,
        runIds: ["0199f3a2-11b0-7c64-8a0e-5b1d3a9f7c20"],
        labels: ["gpu", "browser"],
        agents: [{ id: "codex", version: "0.169.0+preset.1" }],
        sandbox: { isAvailable: true, detail: "bubblewrap 0.8.0" },
        browser: { isAvailable: true, detail: "/usr/bin/chromium, Chromium 140.0" },
        memoryBytes: 16_000_000_000,
        freeMemoryBytes: 9_000_000_000,
        cpus: 4,
        busyCpus: 1.5,
        connectedAt: "2026-11-21T08:00:00.000Z",
        lastSeenAt: "2026-11-21T09:31:02.000Z",
      },
    ],
  },
);
export type Worker = Static<typeof Worker>;
