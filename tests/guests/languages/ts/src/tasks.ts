// Tools that a client can run in the background, and one that it cannot.
import * as v from "valibot";
import { Failure, form, tool } from "wharf-sdk";

import { greetByForm, nameForm } from "./asking.js";
import { object, text, wait } from "./schema.js";

export const tasks = [
  tool("greet", {
    description: "Greets by name.",
    input: object({ name: text("Whom to greet.") }),
    run: ({ name }) => `Hello, ${name}!`,
  }),

  tool("slow_compute", {
    description: "Computes for as many seconds as asked.",
    task: "optional",
    input: object({
      seconds: v.pipe(v.number(), v.minValue(0), v.description("How long it takes.")),
      label: v.optional(text("What to call the result.")),
    }),
    async run({ seconds, label = "it" }) {
      await wait(seconds * 1000);
      return `Computed ${label} in ${seconds} seconds.`;
    },
  }),

  tool("failing_job", {
    description: "Fails after a second, as a tool fails.",
    task: "required",
    async run() {
      await wait(1000);
      // A failure of the tool itself is for the model to read: the task completes, with a result that says so.
      throw new Failure("The job did not work out.");
    },
  }),

  tool("protocol_error_job", {
    description: "Fails with an error of the protocol.",
    task: "optional",
    run() {
      // An invalid request is a protocol error: the task fails.
      throw new Failure("The job cannot run.", { code: -32603 });
    },
  }),

  tool("confirm_delete", {
    description: "Asks before it would delete a file; deletes nothing.",
    task: "optional",
    hints: { destructive: false },
    input: object({ filename: text("Which file would go.") }),
    async run({ filename }, call) {
      const confirmation = object({ confirm: v.pipe(v.boolean(), v.description("Whether to delete it.")) });
      const { content } = await call.ask("confirm", form(`Delete ${filename}?`, confirmation));
      return content?.confirm ? `Deleted ${filename}.` : `Kept ${filename}.`;
    },
  }),

  tool("multi_input", {
    description: "Asks two things at once while it runs.",
    task: "optional",
    async run(_, call) {
      const answers = await Promise.all([
        call.ask("first", nameForm("The first name?")),
        call.ask("second", nameForm("The second name?")),
      ]);
      return `${answers.filter(({ action }) => action === "accept").length} names were given.`;
    },
  }),

  tool("test_tool_with_task", {
    description: "Asks for a name, and greets in the background once it has it.",
    task: "required",
    askBeforeTask: true,
    run: greetByForm,
  }),
];
