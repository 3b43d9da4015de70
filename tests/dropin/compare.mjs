// How close two answers are: identical, equivalent, or different.

/** What makes two answers of a tool equivalent: forms in which they are compared, by tool. The order of lists counts. */
const FORMS = {
  // Why one of several files cannot be read is said in other words.
  read_multiple_files: (text) => text.replace(/^(.*: Error - ).*$/gm, '$1'),
  // When it was read last, and made, is another time for each server.
  get_file_info: (text) => text.replace(/^(created|accessed): .*$/gm, '$1'),
};

/** The blocks of an answer. The same text as structured content is not compared: only the reference server sends it a second time. */
const blocks = ({ isError, content }) => ({ isError: isError === true, content: content ?? [] });

function form(tool, answer) {
  const { isError, content } = blocks(answer);
  const shape = FORMS[tool] ?? ((text) => text);
  // Notes are blocks of their own behind the text.
  const told = content.filter((block, at) => at === 0 || !block.text?.startsWith('['));
  return { isError, texts: isError ? undefined : told.map((block) => shape(block.text ?? JSON.stringify(block))) };
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** Compares what two servers answered, and what they left behind. */
export function compare(tool, theirs, ours) {
  if (!same(theirs.left, ours.left)) return 'different';
  if (same(blocks(theirs.result), blocks(ours.result))) return 'identical';
  return same(form(tool, theirs.result), form(tool, ours.result)) ? 'equivalent' : 'different';
}

/** What is missing of a tool, as the reference server lists it, in ours. More properties may be there; descriptions are our own. */
export function missing(theirs, ours) {
  if (ours === undefined) return ['the tool'];
  const lacks = [];
  const check = (what, one, other) => {
    if (!same(one, other)) lacks.push(`${what} ${JSON.stringify(other)} for ${JSON.stringify(one)}`);
  };
  check('title', theirs.title, ours.title);
  for (const [hint, value] of Object.entries(theirs.annotations ?? {})) {
    // Left out, it has the value that the specification names.
    const otherwise = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true }[hint];
    check(hint, value, ours.annotations?.[hint] ?? otherwise);
  }
  check('required', [...(theirs.inputSchema.required ?? [])].sort(), [...(ours.inputSchema.required ?? [])].sort());
  for (const [name, { type }] of Object.entries(theirs.inputSchema.properties ?? {})) {
    check(`type of ${name}`, type, ours.inputSchema.properties?.[name]?.type);
  }
  // Without structured content, there is no output schema.
  check('an output schema', false, ours.outputSchema !== undefined);
  return lacks;
}
