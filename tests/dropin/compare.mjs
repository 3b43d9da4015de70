// How close two answers are: identical, equivalent, or different.

/** What makes two answers of a tool equivalent: forms in which they are compared, by tool. */
const FORMS = {
  // Folders are read in no order of their own.
  list_directory: (text) => text.split('\n').sort().join('\n'),
  list_directory_with_sizes: (text) => text.split('\n').sort().join('\n'),
  search_files: (text) => text.split('\n').sort().join('\n'),
  directory_tree: (text) => JSON.stringify(sorted(JSON.parse(text))),
  // Why one of several files cannot be read is said in other words.
  read_multiple_files: (text) => text.replace(/^(.*: Error - ).*$/gm, '$1'),
  // When it was read last, and made, is another time for each server.
  get_file_info: (text) => text.replace(/^(created|accessed): .*$/gm, '$1'),
};

function sorted(entries) {
  const byName = (one, other) => (one.name < other.name ? -1 : 1);
  const deep = (entry) => (entry.children ? { ...entry, children: sorted(entry.children) } : entry);
  return entries.map(deep).sort(byName);
}

function form(tool, { isError, content, structuredContent }) {
  const texts = (content ?? []).map((block) => block.text ?? JSON.stringify(block));
  const shape = FORMS[tool] ?? ((text) => text);
  const text = isError ? undefined : texts.map(shape).join('\n');
  // What read_media_file gives is the block; nobody needs its data a second time.
  const structured = tool === 'read_media_file' || isError ? undefined : structuredContent?.content;
  return { isError: isError === true, text, structured: structured === undefined ? undefined : shape(structured) };
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** Compares what two servers answered, and what they left behind. */
export function compare(tool, theirs, ours) {
  if (!same(theirs.left, ours.left)) return 'different';
  const plain = ({ content, structuredContent, isError }) => ({ content, structuredContent, isError: isError === true });
  if (same(plain(theirs.result), plain(ours.result))) return 'identical';
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
  check('an output schema', theirs.outputSchema !== undefined, ours.outputSchema !== undefined);
  return lacks;
}
