type Comment = { id: number; body: string; user: { login: string; type: string }; author_association: string };
type Status = { sha: string; state: string; context: string; description: string; target_url: string };

const docs = "https://docs.github.com/rest";
const forbidden = { message: "Resource not accessible by integration", documentation_url: docs, status: "403" };
const invalid = (field: string) => ({
  message: "Validation Failed",
  errors: [{ resource: "IssueComment", code: "unprocessable", field, message: `${field} is too long` }],
  documentation_url: docs,
  status: "422",
});

/** The GitHub API of the repository `acme/docs` on loopback, as its reference documents it, with one pull request. */
export function startGitHub(pull: { number: number; sha: string; branch: string; owner: string }) {
  const comments: Comment[] = [];
  const statuses: Status[] = [];
  /** Responses that replace the next ones, by `METHOD /path` without the repository. */
  const faults = new Map<string, Response[]>();
  const head = { sha: pull.sha, ref: pull.branch, repo: { full_name: `${pull.owner}/docs` } };
  const shown = { number: pull.number, state: "open", head };

  async function answer(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const path = url.pathname.replace(/^\/repos\/acme\/docs/, "");
    if (request.headers.get("authorization") !== "Bearer github-token")
      return Response.json({ message: "Bad credentials", documentation_url: docs }, { status: 401 });
    const fault = faults.get(`${request.method} ${path}`)?.shift();
    if (fault) return fault;
    const body = request.method === "GET" ? null : await request.json();
    if (typeof body?.body === "string" && body.body.length > 65_536)
      return Response.json(invalid("body"), { status: 422 });
    const toJson = (comment: Comment) => ({
      ...comment,
      html_url: `https://github.com/acme/docs/pull/${pull.number}#issuecomment-${comment.id}`,
    });
    if (path === `/issues/${pull.number}/comments` && request.method === "GET") {
      const [size, page] = [Number(url.searchParams.get("per_page")), Number(url.searchParams.get("page"))];
      return Response.json(comments.slice((page - 1) * size, page * size).map(toJson));
    }
    if (path === `/issues/${pull.number}/comments`) {
      const user = { login: "github-actions[bot]", type: "Bot" };
      const comment = { id: comments.length + 1, body: body.body, user, author_association: "NONE" };
      comments.push(comment);
      return Response.json(toJson(comment), { status: 201 });
    }
    const edited = /^\/issues\/comments\/(\d+)$/.exec(path);
    const known = comments.find(({ id }) => id === Number(edited?.[1]));
    if (known && request.method === "PATCH") {
      known.body = body.body;
      return Response.json(toJson(known));
    }
    const marked = /^\/statuses\/(\w+)$/.exec(path);
    if (marked) {
      if (!["error", "failure", "pending", "success"].includes(body.state) || body.description.length > 140)
        return Response.json(invalid("state"), { status: 422 });
      statuses.push({ sha: marked[1], ...body });
      return Response.json({ id: statuses.length, ...body }, { status: 201 });
    }
    if (path === `/pulls/${pull.number}`) return Response.json(shown);
    if (path === "/pulls")
      return Response.json(url.searchParams.get("head") === `${pull.owner}:${pull.branch}` ? [shown] : []);
    if (path === `/commits/${pull.sha}/pulls`) return Response.json([{ ...shown, number: 1, state: "closed" }, shown]);
    return Response.json({ message: "Not Found", documentation_url: docs, status: "404" }, { status: 404 });
  }

  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
  return {
    url: server.url.origin,
    comments,
    statuses,
    /** Makes the next request fail: for lack of permission, as too large, or because of the rate limit, or with a fault of GitHub. */
    fail(route: string, kind: "forbidden" | "invalid" | "limited" | "broken"): void {
      const fault =
        kind === "broken"
          ? Response.json({ message: "Server Error" }, { status: 500 })
          : kind === "invalid"
            ? Response.json(invalid("body"), { status: 422 })
            : Response.json(forbidden, { status: 403, headers: kind === "limited" ? { "retry-after": "0" } : {} });
      faults.set(route, [...(faults.get(route) ?? []), fault]);
    },
    close: () => server.stop(true),
  };
}
