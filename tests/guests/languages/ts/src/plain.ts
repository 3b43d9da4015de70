// Tools that only answer, log or report progress.
import { embedded, listChanged, result, tool } from "wharf-sdk";

import { picture, sound } from "./media.js";
import { wait } from "./schema.js";

/** Published unchanged: the suite looks for each of its keywords. */
const SCHEMA = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  additionalProperties: false,
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  then: { required: ["phone"] },
  else: { required: ["email"] },
} as const;

const REGION = {
  type: "object",
  properties: {
    region: {
      type: "string",
      description: "Which region; sent in the header `Mcp-Param-Region` as well.",
      "x-mcp-header": "Region",
    },
  },
  required: ["region"],
} as const;

export const plain = [
  tool("test_simple_text", {
    description: "Answers with one text block.",
    run: () => "This is a simple text response for testing.",
  }),

  tool("test_image_content", { description: "Answers with one image.", run: picture }),

  tool("test_audio_content", { description: "Answers with one piece of audio.", run: sound }),

  tool("test_embedded_resource", {
    description: "Answers with one embedded resource.",
    run: () => embedded("test://embedded-resource", "This is an embedded resource content.", "text/plain"),
  }),

  tool("test_multiple_content_types", {
    description: "Answers with a text, an image and an embedded resource.",
    run: () => [
      "Multiple content types test:",
      picture(),
      embedded("test://mixed-content-resource", JSON.stringify({ test: "data", value: 123 }), "application/json"),
    ],
  }),

  tool("test_error_handling", {
    description: "Always fails, as a tool fails: with a result that says so.",
    run: () => result({ content: ["This tool intentionally returns an error for testing."], isError: true }),
  }),

  tool("test_tool_with_logging", {
    description: "Logs three messages while it runs.",
    async run(_, call) {
      call.log("info", "Tool execution started");
      await wait(50);
      call.log("info", "Tool processing data");
      await wait(50);
      call.log("info", "Tool execution completed");
      return "Three messages are logged.";
    },
  }),

  tool("test_tool_with_progress", {
    description: "Reports progress three times while it runs.",
    async run(_, call) {
      for (const done of [0, 50, 100]) {
        call.progress(done, 100);
        await wait(done < 100 ? 50 : 0);
      }
      return "The progress is reported.";
    },
  }),

  tool("json_schema_2020_12_tool", {
    description: "Takes arguments whose JSON Schema uses what is new in the draft 2020-12.",
    input: SCHEMA,
    run: (args) => `Called with: ${JSON.stringify(args)}`,
  }),

  tool("test_reconnection", {
    description: "Takes so long that the stream of its answer is closed meanwhile and the client has to come back.",
    async run() {
      // The operator's `poll_after_ms` has to be less than this duration, so that the suite sees the stream close.
      await wait(900);
      return "The answer that the client came back for.";
    },
  }),

  tool("test_missing_capability", {
    description: "Cannot be called by a client without sampling.",
    needs: ["sampling"],
    run: () => "The client can sample.",
  }),

  tool("test_streaming_elicitation", {
    description: "Reports progress before it answers, and asks nothing.",
    run(_, call) {
      call.progress(1, 1, "about to answer");
      return "Nothing had to be asked.";
    },
  }),

  tool("test_logging_tool", {
    description: "Logs one message before it answers.",
    run(_, call) {
      call.log("info", "a message for who wants it");
      return "One message is logged.";
    },
  }),

  tool("test_trigger_tool_change", {
    description: "Announces that the list of tools has changed.",
    run() {
      listChanged("tools");
      return "The change of the tools is announced.";
    },
  }),

  tool("test_trigger_prompt_change", {
    description: "Announces that the list of prompts has changed.",
    run() {
      listChanged("prompts");
      return "The change of the prompts is announced.";
    },
  }),

  tool("test_x_mcp_header", {
    description: "Takes an argument that clients repeat in a header.",
    input: REGION,
    run: ({ region }) => `The region is ${region}.`,
  }),
];
