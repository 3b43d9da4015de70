// The prompts, one of which asks a question first, and the completion of a prompt's arguments.
import * as v from "valibot";
import { embedded, form, prompt, user } from "wharf-sdk";

import { picture } from "./media.js";
import { object } from "./schema.js";

export const prompts = [
  prompt("test_simple_prompt", {
    description: "A prompt without arguments.",
    get: () => "This is a simple prompt for testing.",
  }),

  prompt("test_prompt_with_arguments", {
    description: "A prompt with two arguments.",
    args: {
      arg1: { description: "The first argument.", complete: ["test1", "test2", "other"] },
      arg2: "The second argument.",
    },
    get: ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  }),

  prompt("test_prompt_with_embedded_resource", {
    description: "A prompt that carries a resource.",
    args: { resourceUri: "The URI of the resource." },
    get: ({ resourceUri }) => [
      user(embedded(resourceUri, "Embedded resource content for testing.", "text/plain")),
      user("Please process the embedded resource above."),
    ],
  }),

  prompt("test_prompt_with_image", {
    description: "A prompt that carries a picture.",
    get: () => [user(picture()), user("Please analyze the image above.")],
  }),

  prompt("test_input_required_result_prompt", {
    description: "A prompt that asks for the context first.",
    async get(_, call) {
      const { content } = await call.ask("user_context", form("What is the context?", object({ context: v.string() })));
      return content ? `Answer with this in mind: ${content.context}` : "Answer.";
    },
  }),
];
