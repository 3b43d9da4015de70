// Schemas of any library that follows the Standard JSON Schema, or written by hand.

import { Failure } from "./errors.js";

const NONE = { json: { type: "object", properties: {} } };

/** The JSON Schema and the validator of a schema; `what` names it in errors. */
export function readSchema(schema, direction, what) {
  if (schema === undefined) return NONE;
  if ((typeof schema !== "object" && typeof schema !== "function") || schema === null) {
    throw new TypeError(`${what} is no schema`);
  }
  const standard = schema["~standard"];
  if (!standard) {
    // wharf checks arguments by the schema itself, so nothing is left to do here.
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
  // Clients read `properties` without looking whether it is there.
  return json.properties ? json : { ...json, properties: {} };
}

function remedy(vendor) {
  if (vendor === "valibot") return 'wrap it in toStandardJsonSchema() of "@valibot/to-json-schema"';
  if (vendor === "zod") return "use zod 4.2 or newer";
  return "give a schema that follows the Standard JSON Schema, or a JSON Schema";
}

/** The value that a validator made, or its complaints as one failure that a model can act on. */
function checked(result) {
  if (typeof result?.then === "function") return result.then(checked);
  if (!result.issues) return result.value;
  const told = result.issues.slice(0, 10).map(({ message, path }) => {
    const where = (path ?? []).map((one) => (typeof one === "object" ? one.key : one)).join(".");
    return where ? `${where}: ${message}` : message;
  });
  throw new Failure(`Invalid arguments: ${told.join("; ")}`);
}

/** A value that the schema roughly describes: enough to walk once through its validator. */
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

/** A schema as MCP allows it for a form: nothing but the fields. */
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
