/** Whether the tests run at full size, as in `bun run check`. The fast tier tries fewer random and repetitive cases. */
export const isThorough = process.env.TEST_SIZE === "full";
