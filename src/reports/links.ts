/** Addresses under which reports and runs are found. */
export const reportUrl = (baseUrl: string, slug: string): string => `${baseUrl}/reports/${slug}`;

export const runUrls = (baseUrl: string, runId: string) => ({
  statusUrl: `${baseUrl}/api/v1/runs/${runId}`,
  runUrl: `${baseUrl}/runs/${runId}`,
});
