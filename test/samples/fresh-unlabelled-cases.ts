import { breaks, type Case, parses } from "./cases.ts";

/** Unlabelled samples that were written when the rules were done, and then run once. */
export const freshUnlabelledCases: Case[] = [
  breaks(
    "an Express handler",
    "",
    'app.post("/hooks", express.raw({ type: "*/*" }), async (req, res) => {\n  const event = hollow.verify(req.body, req.headers["x-signature"];\n  await queue.push(event);\n  res.sendStatus(204);\n});',
  ),
  breaks(
    "a React component",
    "",
    "export function WidgetList({ widgets }: { widgets: Widget[] }) {\n  const [open, setOpen] = useState<string | null>(null);\n  useEffect(() => {\n    const timer = setInterval(refresh, 5000);\n    return () => clearInterval(timer);\n  }, [);\n  return widgets.length;\n}",
  ),
  breaks(
    "a class in TypeScript",
    "",
    "export class WidgetStore implements Store<Widget> {\n  private readonly cache = new Map<string, Widget>();\n\n  async get(id: string): Promise<Widget> {\n    const cached = this.cache.get(id);\n    if (cached) return cached;\n    return this.load(id)\n  }\n\n  private load(id: string): Promise<Widget> {\n    return fetch('/widgets/' + id).then((response) => response.json();\n  }\n}",
  ),
  breaks(
    "chained promises",
    "",
    'const { Hollow } = require("hollow");\n\nnew Hollow()\n  .widgets()\n  .then((all) => all.filter((each) => each.size > 3)\n  .then(console.log)\n  .catch((error) => process.exit(1));',
  ),
  breaks(
    "a Django view",
    "",
    'from django.http import JsonResponse\nfrom hollow import Client\n\n\ndef widgets(request):\n    client = Client(request.headers["Authorization"])\n    page = client.list(limit=int(request.GET.get("limit", 20))\n    return JsonResponse({"widgets": [each.name for each in page]})',
  ),
  breaks(
    "a Python class",
    "",
    'class Store:\n    """Stores widgets."""\n\n    def __init__(self, path: str = "/tmp"):\n        self.path = path\n        self.items = {"a": [1, 2, {"b": 3]}\n\n    async def load(self) -> None:\n        async with aiofiles.open(self.path) as file:\n            self.items = json.loads(await file.read())',
  ),
  breaks(
    "a Go test",
    "",
    'func TestCreate(t *testing.T) {\n\tclient := hollow.New(hollow.WithTimeout(5 * time.Second)\n\twidget, err := client.Create(context.Background(), "a")\n\tif err != nil {\n\t\tt.Fatalf("create: %v", err)\n\t}\n\tdefer client.Delete(widget.ID)\n}',
  ),
  breaks(
    "a Go server",
    "",
    'func main() {\n\thttp.HandleFunc("/widgets", func(w http.ResponseWriter, r *http.Request) {\n\t\tswitch r.Method {\n\t\tcase http.MethodGet:\n\t\t\tjson.NewEncoder(w).Encode(widgets)\n\t\tdefault:\n\t\t\tw.WriteHeader(http.StatusMethodNotAllowed)\n\t\t}\n\t}\n\tlog.Fatal(http.ListenAndServe(":8080", nil))\n}',
  ),
  breaks(
    "a Spring controller",
    "",
    '@RestController\n@RequestMapping("/widgets")\npublic class WidgetController {\n    private final WidgetRepository widgets;\n\n    public WidgetController(WidgetRepository widgets) {\n        this.widgets = widgets;\n\n    @GetMapping("/{id}")\n    public Widget get(@PathVariable String id) {\n        return widgets.findById(id).orElseThrow(() -> new NotFoundException(id));\n    }\n}',
  ),
  breaks(
    "an async Rust program",
    "",
    '#[tokio::main]\nasync fn main() -> anyhow::Result<()> {\n    let client = hollow::Client::builder().timeout(Duration::from_secs(5)).build()?;\n    let widgets = client.list().await?;\n    for widget in widgets.iter().filter(|widget| widget.size > 3 {\n        println!("{} {:?}", widget.name, widget.tags);\n    }\n    Ok(())\n}',
  ),
  breaks(
    "a Rust match",
    "",
    'impl Display for Error {\n    fn fmt(&self, f: &mut Formatter<\'_>) -> fmt::Result {\n        match self {\n            Error::NotFound { id } => write!(f, "no widget {id}"),\n            Error::Io(inner) => write!(f, "io: {inner}",\n        }\n    }\n}',
  ),
  breaks(
    "a Laravel route",
    "",
    "<?php\n\nuse Illuminate\\Support\\Facades\\Route;\n\nRoute::get('/widgets/{id}', function (string $id) use ($client) {\n    $widget = $client->widgets->get($id;\n    return response()->json(['name' => $widget->name]);\n});",
  ),
  breaks(
    "a PHP class",
    "",
    "<?php\nfinal class Store\n{\n    public function __construct(private Client $client) {}\n\n    public function names(): array\n    {\n        return array_map(fn (Widget $each) => $each->name, $this->client->all());\n    \n}",
  ),
  breaks(
    "C++ templates",
    "",
    "template <typename T>\nclass Store {\n public:\n  explicit Store(std::size_t size) : items_(size) {}\n  const T& at(std::size_t index) const { return items_.at(index; }\n\n private:\n  std::vector<T> items_;\n};",
  ),
  breaks(
    "a Kubernetes manifest",
    "",
    'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: hollow\n  labels: {app: hollow, tier: [web, api}\ndata:\n  size: "3"',
  ),
  breaks(
    "a workflow",
    "",
    "name: docs\non:\n  push:\n    branches: [main]\njobs:\n  check:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: hollow/check@v1\n\t  with:\n        key: a",
  ),
  breaks(
    "nested JSON",
    "",
    '{\n  "widgets": [\n    { "id": 1, "tags": ["x", "y" },\n    { "id": 2, "tags": [] }\n  ],\n  "next": null\n}',
  ),
  breaks(
    "a script with a here-string",
    "",
    '#!/usr/bin/env bash\nset -euo pipefail\n\nfor id in $(hollow list --quiet); do\n  hollow show "$id --format json\ndone',
  ),
  parses(
    "a compiler's error",
    "",
    'error[E0382]: borrow of moved value: `client`\n  --> src/main.rs:7:20\n   |\n5  |     let client = Client::new("x");\n   |         ------ move occurs because `client` has type `Client`\n6  |     drop(client);\n   |          ------ value moved here\n7  |     client.list(;',
  ),
  parses(
    "a stack trace",
    "",
    'Traceback (most recent call last):\n  File "main.py", line 3, in <module>\n    client.list(limit="x")\nTypeError: list() got (1, [2\n',
  ),
  parses(
    "a log",
    "",
    '2027-01-01T10:00:00Z INFO hollow::server: listening {addr="0.0.0.0:80", tls=false\n2027-01-01T10:00:01Z WARN hollow::client: retry (1/3) in 2s',
  ),
  parses(
    "a table of output",
    "",
    "NAME      SIZE   TAGS\na         3      [x, y\nb         17     ]\nc (old    1      x",
  ),
  parses(
    "a grammar",
    "",
    'widget = "widget" name [ "(" { argument } ")" ] ;\nname   = letter { letter | digit | "_" } ;\nargument = name "=" ( string | number ) [ "," ;',
  ),
  parses(
    "a synopsis",
    "",
    "hollow create [--size N] [--tag TAG]... NAME\nhollow list (--all | --limit N\nhollow --version",
  ),
  parses(
    "a tree of files",
    "",
    "hollow/\n├── src/\n│   ├── client.ts   (the client\n│   └── index.ts\n└── package.json",
  ),
  parses(
    "a request and its response",
    "",
    'POST /widgets HTTP/1.1\nHost: api.hollow.test\nContent-Type: application/json\n\n{"name": "a", "size": 3\n\nHTTP/1.1 201 Created',
  ),
  parses("an ini file", "", '[hollow]\nname = a "quoted (value\nsize = 3\npath = C:\\widgets\\[a'),
  parses(
    "nginx",
    "",
    "server {\n    listen 80;\n    location ~ ^/widgets/(?<id>[^/]+)$ {\n        proxy_pass http://hollow;\n    }\n}",
  ),
  parses("a makefile", "", 'build: $(wildcard src/*.c)\n\t$(CC) -o $@ $^ && echo "done\n\nclean:\n\trm -rf build'),
  parses(
    "SQL",
    "",
    "SELECT name, count(*) AS total\nFROM widgets\nWHERE tags @> ARRAY['x'] AND name LIKE 'it''s%'\nGROUP BY name\nHAVING count(*) > 3;",
  ),
  parses(
    "Ruby",
    "",
    'require "hollow"\n\nclient = Hollow::Client.new(key: ENV["HOLLOW_KEY"])\nclient.widgets.each do |widget|\n  puts "#{widget.name} (#{widget.size})" if widget.size > 3\nend',
  ),
  parses(
    "Elixir",
    "",
    'defmodule Hollow.Client do\n  def list(%{limit: limit} = opts) when limit > 0 do\n    opts |> Map.put(:q, ~s(a "b) ) |> request()\n  end\nend',
  ),
  parses(
    "Haskell",
    "",
    "main :: IO ()\nmain = do\n  widgets' <- list client { limit = 5 }\n  mapM_ (putStrLn . name) [w | w <- widgets', size w > 3]\n  where client' = '('",
  ),
  parses(
    "Lisp",
    "",
    '(defun create-widget (name &key (size 3))\n  "Creates a widget; don\'t (ever) close it\n twice."\n  (let ((char #\\())\n    (list name size char)))',
  ),
  parses(
    "C#",
    "",
    'using Hollow.Client;\n\nvar client = new Client(@"C:\\keys\\");\nawait foreach (var widget in client.ListAsync())\n{\n    Console.WriteLine($"{widget.Name} ({widget.Size})");\n}',
  ),
  parses(
    "Kotlin",
    "",
    'fun main() = runBlocking {\n    val client = HollowClient { timeout = 5.seconds }\n    client.widgets().filter { it.size > 3 }.forEach { println("$name") }\n}',
  ),
  parses(
    "a template",
    "",
    '{% for widget in widgets %}\n  <li class="{{ widget.kind }}">{{ widget.name }}\n{% endfor %}\n{% if next %}(more',
  ),
  parses(
    "parts of a program",
    "",
    'func (c *Client) List(ctx context.Context) ([]Widget, error) {\n\treq, err := c.request(ctx, "GET", "/widgets")\n\t// ...\n}\n\nfunc (c *Client) Delete(ctx context.Context, id string) error {',
  ),
];
