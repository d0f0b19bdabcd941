import { toCsv } from "../http/csv.ts";
import { breakdownNames, type SpendingReport } from "./schema.ts";

/** The breakdowns of a month as CSV, one row each. */
export const spendingCsv = ({ breakdown }: SpendingReport): string =>
  [
    toCsv(["by", "key", "name", "spentUsd", "estimatedUsd", "previousUsd"]),
    ...breakdownNames.flatMap((by) =>
      breakdown[by].map(({ key, name, spentUsd, estimatedUsd, previousUsd }) =>
        toCsv([by, key, name, spentUsd, estimatedUsd, previousUsd]),
      ),
    ),
  ].join("");
