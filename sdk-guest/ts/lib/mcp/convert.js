// Converts between MCP's objects and the contract's records.

import { contents, more } from "../content.js";

const has = (value) => (value !== undefined && value !== null ? value : undefined);

/** Tells wharf to leave arguments that do not fit the schema to the server, which knows better which of them it can convert. */
const VALIDATES = { "dev.wharf/validates": true };

const NO_NEEDS = { form: false, url: false, sampling: false, samplingTools: false, roots: false };

export function toolOf({ name, description, title, inputSchema, outputSchema, annotations, ...rest }) {
  const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint, ...others } = annotations ?? {};
  const given = {
    readOnly: has(readOnlyHint),
    destructive: has(destructiveHint),
    idempotent: has(idempotentHint),
    openWorld: has(openWorldHint),
  };
  const hints = Object.values(given).some((one) => one !== undefined) ? given : undefined;
  const { execution: _, _meta, ...members } = rest;
  return {
    name,
    description: description ?? "",
    inputSchema: JSON.stringify(inputSchema),
    details: {
      title: has(title),
      outputSchema: outputSchema && JSON.stringify(outputSchema),
      hints,
      needs: NO_NEEDS,
      task: "forbidden",
      more: more({
        ...members,
        ...(Object.keys(others).length && { annotations: others }),
        _meta: { ..._meta, ...VALIDATES },
      }),
    },
  };
}

export const resourceOf = ({ uri, name, description, mimeType, ...rest }) => ({
  uri,
  name,
  description: has(description),
  mimeType: has(mimeType),
  more: more(rest),
});

export const templateOf = ({ uriTemplate, name, description, mimeType, ...rest }) => ({
  uriTemplate,
  name,
  description: has(description),
  mimeType: has(mimeType),
  more: more(rest),
});

export const promptOf = ({ name, description, arguments: args, ...rest }) => ({
  name,
  description: has(description),
  // Some servers write null, or an object.
  arguments: (Array.isArray(args) ? args : []).map(({ name, description, required }) => ({
    name,
    description: has(description),
    required: required === true,
  })),
  more: more(rest),
});

/** Returns a block of MCP as the contract's content. */
export function contentOf(block) {
  const { type, text, ...rest } = block;
  if (type === "text" && Object.keys(rest).length === 0) return { tag: "text", val: String(text) };
  return { tag: "raw", val: JSON.stringify(block) };
}

export function toolOutcome({ content = [], structuredContent, isError, _meta }) {
  const structured = structuredContent === undefined ? undefined : JSON.stringify(structuredContent);
  return {
    tag: "done",
    val: { content: content.map(contentOf), structured, isError: isError === true, more: more({ _meta }) },
  };
}

const bytes = (base64) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));

export const readOutcome = (result) => ({
  tag: "done",
  val: result.contents.map(({ uri, text, blob, mimeType, _meta }) =>
    contents(uri, text === undefined ? bytes(blob) : text, has(mimeType), { _meta }),
  ),
});

export const promptOutcome = ({ description, messages, _meta }) => ({
  tag: "done",
  val: {
    description: has(description),
    messages: messages.map(({ role, content }) => ({ role, content: contentOf(content) })),
    more: more({ _meta }),
  },
});
