// The values that tools, prompts and resources return.

const json = (members) => {
  const given = Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
  return Object.keys(given).length ? JSON.stringify(given) : undefined;
};

export const text = (value) => ({ tag: "text", val: String(value) });

export const image = (data, mimeType = "image/png") => ({ tag: "image", val: { mimeType, data } });

export const audio = (data, mimeType = "audio/wav") => ({ tag: "audio", val: { mimeType, data } });

/** A pointer to a resource: its URI and name, and `title`, `description`, `size`, `annotations`, `icons`, `_meta`. */
export function link(uri, name, { mimeType, ...more } = {}) {
  return { tag: "link", val: { uri, name, mimeType, more: json(more) } };
}

/** A resource embedded in a result. */
export const embedded = (uri, data, mimeType) => ({ tag: "embedded", val: contents(uri, data, mimeType) });

/** A complete content block of MCP. */
export const raw = (block) => ({ tag: "raw", val: JSON.stringify(block) });

/** One item of a resource's contents: text or bytes. */
export function contents(uri, data, mimeType, more = {}) {
  const body = typeof data === "string" ? { tag: "text", val: data } : { tag: "bytes", val: data };
  return { uri, mimeType, body, more: json(more) };
}

const KINDS = ["text", "image", "audio", "link", "embedded", "raw"];

export const isContent = (value) =>
  typeof value === "object" && value !== null && KINDS.includes(value.tag) && "val" in value;

/** Converts texts and content blocks to a list of content; returns `undefined` for any other value. */
export function asContent(value) {
  const list = Array.isArray(value) ? value : [value];
  const blocks = list.map((one) => (typeof one === "string" ? text(one) : one));
  return blocks.every(isContent) ? blocks : undefined;
}

/** A complete result: content in addition to structured data, an error with content, `_meta`. */
export class ToolResult {
  constructor({ content = [], structured, isError = false, meta }) {
    this.content = content;
    this.structured = structured;
    this.isError = isError;
    this.meta = meta;
  }
}

export const result = (members) => new ToolResult(members);

export const user = (content) => ({ role: "user", content });

export const assistant = (content) => ({ role: "assistant", content });

export { json as more };
