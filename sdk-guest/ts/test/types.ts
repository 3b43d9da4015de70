// Compiled by a test. `@ts-expect-error` makes it an error if the next line compiles.
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import * as v from "valibot";
import { z } from "zod";
import { form, image, plugin, prompt, resource, result, roots, text, tool } from "../lib/index.js";
import { readFile } from "../lib/files.js";

const Day = z.object({ day: z.string(), n: z.number().optional() });
const Sure = toStandardJsonSchema(v.object({ really: v.boolean() }));

tool("a", { description: "x", run: () => "x" });
tool("a", { description: "x", run: async () => [text("x"), "y", image(new Uint8Array())] });
tool("a", { description: "x", run: () => {} });
tool("a", { description: "x", run: () => result({ content: ["x"], isError: true }) });
tool("a", { description: "x", input: Day, run: ({ day, n }) => day + (n ?? 1).toFixed() });
tool("a", { description: "x", input: { type: "object" }, run: (args) => args.anything.at.all });
tool("a", { description: "x", output: Day, run: () => ({ day: "x" }) });
tool("a", { description: "x", output: Day, run: async () => result({ structured: {} }) });

// @ts-expect-error a number is not content
tool("a", { description: "x", run: () => 3 });
// @ts-expect-error an object needs `output`
tool("a", { description: "x", run: async () => ({ day: "x" }) });
// @ts-expect-error not what `output` says
tool("a", { description: "x", output: Day, run: () => ({ day: 3 }) });
// @ts-expect-error there is no such argument
tool("a", { description: "x", input: Day, run: ({ night }) => "x" });
// @ts-expect-error a tool has a description
tool("a", { run: () => "x" });
// @ts-expect-error valibot's schema alone has no JSON Schema
tool("a", { description: "x", input: v.object({}), run: () => "x" });
// @ts-expect-error there is no such need
tool("a", { description: "x", needs: ["forms"], run: () => "x" });

tool("a", {
  description: "x",
  async run(_, call) {
    const { action, content } = await call.ask("sure", form("Sure?", Sure));
    const sure: boolean | undefined = content?.really;
    if (action === "accept") content.really satisfies boolean;
    const { a, b } = await call.askAll({ a: form("Sure?", Day), b: roots() });
    a.content?.day satisfies string | undefined;
    b[0]?.uri satisfies string | undefined;
    // @ts-expect-error there is no such field
    content?.maybe;
    const bytes: Uint8Array = await readFile("/w/a");
    return `${sure} ${bytes.length} ${(await readFile("/w/a", "utf8")).trim()}`;
  },
});

resource("note:///{day}/{+path}", { read: ({ day, path, uri }) => day + path + uri });
// @ts-expect-error there is no such variable
resource("note:///{day}", { read: ({ night }) => night });
// @ts-expect-error nothing to complete
resource("note:///{day}", { read: () => "x", complete: { night: [] } });

prompt("p", {
  args: { day: "Which.", at: { required: false } },
  get: ({ day, at }) => day.trim() + (at?.trim() ?? ""),
});
// @ts-expect-error it may be missing
prompt("p", { args: { at: { required: false } }, get: ({ at }) => at.trim() });

plugin([tool("a", { description: "x", run: () => "x" }), [resource("a:b", { read: () => "x" })]], {
  instructions: "x",
});
// @ts-expect-error parts are a list
plugin(tool("a", { description: "x", run: () => "x" }));
