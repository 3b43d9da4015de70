// Asks two servers the same, one call after the other, and counts how alike their answers are.

const AT_LEAST = 0.97;

/** A value with the members of its objects in one order. */
function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

const same = (one, other) => JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));

/** What a schema asks for, without what says nothing of values. */
function plain(schema) {
  if (Array.isArray(schema)) return schema.map(plain);
  if (typeof schema !== 'object' || schema === null) return schema;
  // What may be null may be left out, and null then counts as left out.
  const { anyOf, default: otherwise, ...rest } = schema;
  const kinds = Array.isArray(anyOf) ? anyOf.filter((kind) => kind.type !== 'null') : [];
  if (kinds.length === 1 && kinds.length < anyOf.length && otherwise === null) return plain({ ...kinds[0], ...rest });
  return Object.fromEntries(
    Object.entries(schema)
      // The name of a property may be `title`; what stands there is a schema then.
      .filter(([key, value]) => key !== '$schema' && (key !== 'title' || typeof value === 'object'))
      .map(([key, value]) => [key, plain(value)]),
  );
}

/** Complains about tools of the reference server that ours does not list in the same way. `intended` is tried on each difference. */
export async function lists(name, theirs, ours, intended, complain) {
  const [wanted, given] = [(await theirs.request('tools/list', {})).tools, (await ours.request('tools/list', {})).tools];
  const hints = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true };
  for (const tool of wanted) {
    const own = given.find((one) => one.name === tool.name);
    const parts = (one) => ({
      title: one?.title,
      description: one?.description,
      annotations: { ...hints, ...one?.annotations },
      inputSchema: plain(one?.inputSchema),
      outputSchema: plain(one?.outputSchema),
    });
    const [one, other] = [parts(tool), parts(own)];
    for (const part of Object.keys(one)) {
      if (same(one[part], other[part]) || intended.some(({ applies }) => applies(tool.name, part))) continue;
      complain(`${name}: ${part} of ${tool.name}\n  reference: ${JSON.stringify(sorted(one[part]))}\n  wharf:     ${JSON.stringify(sorted(other[part]))}`);
    }
  }
  const more = given.filter((one) => !wanted.some((tool) => tool.name === one.name));
  if (more.length > 0) complain(`${name}: more tools: ${more.map((tool) => tool.name).join(', ')}`);
}

/**
 * Errors may have other words, and an answer may be given the form in which it is compared. Structured content is left out: the reference
 * servers repeat their text in it, and ours do not.
 */
function verdict(one, other, form) {
  const all = ({ result, left }) => ({ isError: result.isError === true, content: result.content, left });
  if (same(all(one), all(other))) return 'identical';
  const brief = (told) => {
    const { isError, content, left } = all(told);
    return isError ? { isError, left } : { content: content.map((block) => form(block.text)), left };
  };
  return same(brief(one), brief(other)) ? 'equivalent' : 'different';
}

/**
 * Compares what two servers said to each of the calls that were `asked`: `theirs` and `ours` have a `result` each, and what was `left`.
 * Complains of what differs and is not intended, and of what is intended and does not differ.
 */
export function judge(name, asked, theirs, ours, { intended, complain, show = 20, form = (_, text) => text }) {
  const count = { identical: 0, equivalent: 0, different: 0 };
  const used = new Map(intended.map(({ id }) => [id, 0]));
  let shown = 0;
  asked.forEach((one, at) => {
    const reached = verdict(theirs[at], ours[at], (text) => form(one, text));
    count[reached] += 1;
    if (reached !== 'different') return;
    const reason = intended.find(({ applies }) => applies(one, theirs[at], ours[at]));
    if (reason) used.set(reason.id, used.get(reason.id) + 1);
    else if (shown++ < show) {
      const [reference, plugin] = [theirs[at], ours[at]].map((told) => JSON.stringify(told).slice(0, 1500));
      complain(`${name}: ${one.tool} ${JSON.stringify(one.args).slice(0, 500)}\n  reference: ${reference}\n  wharf:     ${plugin}`);
    } else complain(`${name}: ${one.tool}, one more`);
  });
  const alike = (count.identical + count.equivalent) / asked.length;
  console.log(
    `${name}: ${asked.length} calls, ${count.identical} identical, ${count.equivalent} equivalent, ${count.different} different: ` +
      `${(alike * 100).toFixed(2)} % alike`,
  );
  for (const { id, reason } of intended) {
    console.log(`  ${String(used.get(id)).padStart(4)}  ${id}: ${reason}`);
    if (used.get(id) === 0) complain(`${name}: ${id}: nothing differs any more`);
  }
  if (alike < AT_LEAST) complain(`${name}: less than ${AT_LEAST * 100} of 100 are alike`);
}

/** Numbers that look random and are the same in every run. */
export function random(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
