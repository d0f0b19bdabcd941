export const decode = (text: string) =>
  text.replaceAll("&lt;", "<").replaceAll("&quot;", '"').replaceAll("&gt;", ">").replaceAll("&amp;", "&");

/** The fields that a browser would send for the forms of a page, without buttons. */
export function fieldsOf(html: string): Record<string, string | string[]> {
  const fields: [string, string][] = [];
  const begin = (element: { getAttribute(name: string): string | null }) => {
    fields.push([decode(element.getAttribute("name") ?? ""), ""]);
  };
  const go = (value: string) => {
    const last = fields.at(-1) as [string, string];
    last[1] += decode(value);
  };
  new HTMLRewriter()
    .on("main input[name]", {
      element(input) {
        const [name, value, type] = ["name", "value", "type"].map((each) => decode(input.getAttribute(each) ?? ""));
        if (type === "file") return;
        if (type !== "checkbox") fields.push([name ?? "", value ?? ""]);
        else if (input.hasAttribute("checked")) fields.push([name ?? "", "on"]);
      },
    })
    .on("main textarea[name]", { element: begin, text: ({ text }) => go(text) })
    .on("main select[name]", { element: begin })
    .on("main option[selected]", { element: (option) => go(option.getAttribute("value") ?? "") })
    .transform(html);
  const all = Object.groupBy(fields, ([name]) => name);
  return Object.fromEntries(
    Object.entries(all).map(([name, each = []]) => {
      const values = each.map(([, value]) => value);
      return [name, values.length === 1 ? (values[0] as string) : values];
    }),
  );
}
