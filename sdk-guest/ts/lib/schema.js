// Schemas of any library that implements Standard JSON Schema, or hand-written ones.

import { Failure } from "./errors.js";

const NONE = { json: { type: "object", properties: {} } };

/** Returns the JSON Schema and the validator of a schema; `what` names the schema in errors. */
export function readSchema(schema, direction, what) {
  if (schema === undefined) return NONE;
  if ((typeof schema !== "object" && typeof schema !== "function") || schema === null) {
    throw new TypeError(`${what} is not a schema`);
  }
  const standard = schema["~standard"];
  if (!standard) {
    // wharf validates arguments by the JSON Schema, so a hand-written schema needs no validator.
    return { json: objectSchema(schema, what) };
  }
  if (!standard.jsonSchema) {
    throw new TypeError(`${what}: this schema of ${standard.vendor} has no JSON Schema; ${remedy(standard.vendor)}`);
  }
  const { $schema, ...json } = standard.jsonSchema[direction]({ target: "draft-2020-12" });
  return { json: objectSchema(json, what), validate: (value) => checked(standard.validate(value)) };
}

function objectSchema(json, what) {
  if (json.type !== "object") throw new TypeError(`${what} must be a schema of an object: "type": "object"`);
  // Some clients access `properties` without checking whether it exists.
  return json.properties ? json : { ...json, properties: {} };
}

function remedy(vendor) {
  if (vendor === "valibot") return 'wrap it in toStandardJsonSchema() of "@valibot/to-json-schema"';
  if (vendor === "zod") return "use zod 4.2 or newer";
  return "use a library that implements Standard JSON Schema, or write a JSON Schema";
}

/** Returns the value of a validation, or throws its issues as one failure that a model can act on. */
function checked(result) {
  if (typeof result?.then === "function") return result.then(checked);
  if (!result.issues) return result.value;
  const told = result.issues.slice(0, 10).map(({ message, path }) => {
    const where = (path ?? []).map((one) => (typeof one === "object" ? one.key : one)).join(".");
    return where ? `${where}: ${message}` : message;
  });
  throw new Failure(`Invalid arguments: ${told.join("; ")}`);
}

/** Returns a value that roughly matches the schema, to warm up its validator. */
export function example(json) {
  if (json.const !== undefined) return json.const;
  if (json.default !== undefined) return json.default;
  if (Array.isArray(json.enum)) return json.enum[0];
  const one = json.anyOf?.[0] ?? json.oneOf?.[0];
  if (one) return example(one);
  switch (json.type) {
    case "object":
      return Object.fromEntries(Object.entries(json.properties ?? {}).map(([name, inner]) => [name, example(inner)]));
    case "array":
      return json.items ? [example(json.items)] : [];
    case "string":
      return "x".repeat(Math.min(json.minLength ?? 1, 64));
    case "number":
    case "integer":
      return json.minimum ?? 1;
    case "boolean":
      return true;
    default:
      return null;
  }
}

const FORMATS = ["email", "uri", "date", "date-time"];

/** Reduces a schema to the form that MCP allows for elicitation: only the fields. */
export function formSchema(schema, what) {
  const { json, validate } = readSchema(schema, "input", what);
  const properties = {};
  for (const [name, field] of Object.entries(json.properties)) {
    const { format, ...rest } = field;
    properties[name] = FORMATS.includes(format) ? field : rest;
  }
  const required = json.required?.length ? { required: json.required } : {};
  return { json: { type: "object", properties, ...required }, validate };
}
