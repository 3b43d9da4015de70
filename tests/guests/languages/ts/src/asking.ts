// Tools that ask the client. After a question, the tool runs again from its start with the answers; nothing waits in between.
import * as v from "valibot";
import { type Call, type FormAnswer, form, type Question, roots, sampling, tool } from "wharf-sdk";

import { object, text } from "./schema.js";

const Name = object({ name: v.string() });

/** A form for a name. The suite answers each with a `name`. */
export const nameForm = (message: string) => form(message, Name);

/** The parameters of `sampling/createMessage` for one message of the user. */
const userSays = (text: string) => ({
  messages: [{ role: "user" as const, content: { type: "text", text } }],
  maxTokens: 100,
});

/** The text of a reply; a client may send one block or several. */
const textOf = (reply: any): string => reply.content?.text ?? reply.content?.[0]?.text ?? "no text";

function told({ action, content }: FormAnswer<unknown>): string {
  const entered = action === "accept" ? `, content=${JSON.stringify(content)}` : "";
  return `Elicitation completed: action=${action}${entered}`;
}

export async function greetByForm(_: object, call: Call): Promise<string> {
  const { content } = await call.ask("user_name", nameForm("What is your name?"));
  return content ? `Hello, ${content.name}!` : "Hello, anonymous!";
}

async function confirm(_: object, call: Call): Promise<string> {
  call.keep("asked");
  const { content } = await call.ask("confirm", form("Is that all right?", object({ ok: v.boolean() })));
  const state = call.kept() === "asked" ? "state-ok" : "state-lost";
  return `${state}: ${content?.ok ? "confirmed" : "not confirmed"}`;
}

const DEFAULTS = {
  type: "object",
  properties: {
    name: { type: "string", description: "User name", default: "John Doe" },
    age: { type: "integer", description: "User age", default: 30 },
    score: { type: "number", description: "User score", default: 95.5 },
    status: {
      type: "string",
      description: "User status",
      enum: ["active", "inactive", "pending"],
      default: "active",
    },
    verified: { type: "boolean", description: "Verification status", default: true },
  },
} as const;

const TITLED = [
  { const: "value1", title: "First Option" },
  { const: "value2", title: "Second Option" },
  { const: "value3", title: "Third Option" },
];

const ENUMS = {
  type: "object",
  properties: {
    untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
    titledSingle: { type: "string", oneOf: TITLED },
    legacyEnum: {
      type: "string",
      enum: ["opt1", "opt2", "opt3"],
      enumNames: ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
    titledMulti: { type: "array", items: { anyOf: TITLED } },
  },
} as const;

const PREFIX = "test_input_required_result_";

export const asking = [
  tool("test_sampling", {
    description: "Has the client's model answer a prompt.",
    input: object({ prompt: text("What the model is to answer.") }),
    run: async ({ prompt }, call) => `LLM response: ${textOf(await call.sample("reply", userSays(prompt)))}`,
  }),

  tool("test_elicitation", {
    description: "Asks the person for a user name and an email address.",
    input: object({ message: text("What the person reads.") }),
    async run({ message }, call) {
      const account = object({ username: text("The user's name."), email: text("The user's email address.") });
      return told(await call.ask("account", form(message, account)));
    },
  }),

  tool("test_elicitation_sep1034_defaults", {
    description: "Asks the person with a form whose fields have defaults.",
    run: async (_, call) =>
      told(await call.ask("form", form("Please review and update the form fields with defaults", DEFAULTS))),
  }),

  tool("test_elicitation_sep1330_enums", {
    description: "Asks the person with a form of every kind of choice.",
    run: async (_, call) => told(await call.ask("form", form("Please select options from the enum fields", ENUMS))),
  }),

  tool(`${PREFIX}elicitation`, { description: "Asks for a name and greets.", run: greetByForm }),

  tool(`${PREFIX}sampling`, {
    description: "Has the client's model name a capital.",
    async run(_, call) {
      const reply = await call.sample("capital_question", userSays("What is the capital of France?"));
      return `The model says: ${textOf(reply)}`;
    },
  }),

  tool(`${PREFIX}list_roots`, {
    description: "Asks what the client has opened.",
    async run(_, call) {
      const opened = (await call.roots()).map(({ uri }) => uri);
      return `${opened.length} roots: ${opened.join(" ")}`;
    },
  }),

  tool(`${PREFIX}request_state`, {
    description: "Asks for a confirmation and keeps something meanwhile.",
    run: confirm,
  }),

  tool(`${PREFIX}multiple_inputs`, {
    description: "Asks three things at once.",
    async run(_, call) {
      call.keep("asked");
      const answers = await call.askAll({
        user_name: nameForm("What is your name?"),
        greeting: sampling(userSays("Write a short greeting.")),
        client_roots: roots(),
      });
      return `${Object.keys(answers).length} answers arrived.`;
    },
  }),

  tool(`${PREFIX}multi_round`, {
    description: "Asks twice, one after the other.",
    async run(_, call) {
      call.keep("the name is asked");
      const first = await call.ask("step1", nameForm("Step 1: what is your name?"));
      if (!first.content) return "There was no name.";
      call.keep("the color is asked");
      const question = `Step 2: what is your favorite color, ${first.content.name}?`;
      const second = await call.ask("step2", form(question, object({ color: v.string() })));
      if (!second.content) return `${first.content.name} has no favorite.`;
      return `${first.content.name} likes ${second.content.color}.`;
    },
  }),

  tool(`${PREFIX}tampered_state`, {
    description: "Asks for a confirmation; what it keeps meanwhile must come back unchanged.",
    run: confirm,
  }),

  tool(`${PREFIX}capabilities`, {
    description: "Asks only what this client can answer.",
    async run(_, call) {
      const questions: Record<string, Question<unknown>> = {};
      if (call.can("sampling")) questions["greeting"] = sampling(userSays("Write a short greeting."));
      if (call.can("form")) questions["user_name"] = nameForm("What is your name?");
      if (call.can("roots")) questions["client_roots"] = roots();
      const answers = await call.askAll(questions);
      const count = Object.keys(answers).length;
      return count ? `${count} answers arrived.` : "This client can be asked nothing.";
    },
  }),
];
