/** URLs of reports and runs. */
export const reportUrl = (baseUrl: string, slug: string): string => `${baseUrl}/reports/${slug}`;

export const runUrls = (baseUrl: string, runId: string) => ({
  statusUrl: `${baseUrl}/api/v1/runs/${runId}`,
  runUrl: `${baseUrl}/runs/${runId}`,
});
