// The sqlite plugin compared with the reference SQLite server, and tests that the reference server does not survive.

import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { judge, lists, random } from './judge.mjs';
import { Server } from './server.mjs';

const URI = 'memo://insights';

const query = ({ args }) => args.query ?? '';
const fails = ({ result }) => result.isError === true;

/** Where they differ on purpose. */
const INTENDED = [
  {
    id: 'changes that begin with another word',
    reason: 'every change is kept: the reference server loses those by REPLACE, WITH, VACUUM and PRAGMA, and the ones after a comment',
    applies: (one, theirs, ours) => one.tool === 'write_query' && /^\s*(REPLACE|WITH|VACUUM|PRAGMA|ANALYZE|REINDEX|--|\/\*)/i.test(query(one)) && !fails(ours),
  },
  {
    id: 'reading that begins with another word',
    reason: 'what changes nothing may be asked, whatever it begins with',
    applies: (one, theirs, ours) => one.tool === 'read_query' && fails(theirs) && !fails(ours) && !/^\s*SELECT/i.test(query(one)),
  },
  {
    id: 'affected_rows of no rows',
    reason: 'a statement that is not about rows changes 0: the reference server says -1',
    applies: (one, theirs, ours) => theirs.result.content[0].text === '[{"affected_rows": -1}]' && ours.result.content[0].text === '[{"affected_rows": 0}]',
  },
  {
    id: 'RETURNING',
    reason: 'the rows that a statement returns are told, and the change is kept',
    applies: (one) => /RETURNING/i.test(query(one)),
  },
  {
    id: 'columns of one name',
    reason: 'each is there: the reference server leaves out all but the first',
    applies: (_, __, ours) => ours.result.content[0].text.includes(':1":'),
  },
  {
    id: 'no such table',
    reason: 'a table that is not there is an error, and not a table without columns',
    applies: (one, theirs, ours) => one.tool === 'describe_table' && theirs.result.content[0].text === '[]' && fails(ours),
  },
  {
    id: 'names of tables',
    reason: 'any table can be described by its name: the reference server needs some in quotes',
    applies: (one) => one.tool === 'describe_table' && /[ "'-]/.test(one.args.table_name ?? ''),
  },
  {
    id: 'only the database',
    reason: 'no other file can be named, and nothing switched that is of no use to a single statement',
    applies: (one, theirs, ours) => fails(ours) && /ATTACH|VACUUM INTO|PRAGMA/i.test(query(one)),
  },
  {
    id: 'nothing to change',
    reason: 'write_query takes no statement that changes nothing, such as BEGIN',
    applies: (one, theirs, ours) => one.tool === 'write_query' && fails(ours) && theirs.result.content[0].text === '[]',
  },
  {
    id: 'a comment before CREATE TABLE',
    reason: 'SQLite says what a statement does, and not its first word',
    applies: (one, theirs, ours) => one.tool === 'create_table' && fails(theirs) && !fails(ours),
  },
  {
    id: 'bytes that are not UTF-8',
    reason: 'they are replaced: the reference server gives none of the rows',
    applies: (one, theirs, ours) => fails(theirs) && ours.result.content[0].text.includes('\\ufffd'),
  },
];

/** Descriptions and schemas are the same; only what tools do to their world is told here and not there. */
const LISTED = [{ applies: (_, part) => part === 'annotations' }];

const WORDS = ['red', 'Green', 'blue', 'ünï', '日本', '', "it''s", 'a "b"', 'x'.repeat(300), '\u0001\n\t', '😀'];

function cases() {
  const next = random(11);
  const one = (list) => list[next(list.length)];
  const all = [];
  const ask = (tool, args) => all.push({ tool, args });
  const read = (text) => ask('read_query', { query: text });
  const write = (text) => ask('write_query', { query: text });
  const number = () => one([next(1000), -next(1000), next(100000) / 64, 9007199254740993n, 1e15, -0.5, 0, 1e-7]);
  const value = () => one(['NULL', number(), number(), `'${one(WORDS)}'`, `X'${one(['', '00', 'ff00', 'DEADBEEF'])}'`]);
  ask('list_tables', {});
  ask('create_table', { query: 'CREATE TABLE things (id INTEGER PRIMARY KEY AUTOINCREMENT, w TEXT NOT NULL DEFAULT \'x\', n REAL, b BLOB, UNIQUE (w, n))' });
  ask('create_table', { query: 'CREATE TABLE things (id)' });
  ask('create_table', { query: '  create table if not exists parts (thing INTEGER REFERENCES things (id) ON DELETE CASCADE, n NUMERIC, w)' });
  ask('create_table', { query: 'CREATE TABLE "my things" ("a b" int, "c""d")' });
  ask('create_table', { query: 'CREATE TABLE strict (n INT, w TEXT, b ANY) STRICT' });
  for (const text of ['CREATE VIEW v AS SELECT 1', 'SELECT 1', 'CREATE INDEX i ON parts (n)', '', 'CREATE TABLE', 'CREATE TABLE a (b); CREATE TABLE c (d)']) ask('create_table', { query: text });
  ask('list_tables', {});
  for (const table_name of ['things', 'parts', 'THINGS', 'my things', '"my things"', 'gone', 'strict', 'v', 'sqlite_master', 'things; DROP TABLE things']) ask('describe_table', { table_name });
  for (let round = 0; round < 500; round++) {
    const table = one(['things', 'parts']);
    const columns = table === 'things' ? ['w', 'n', 'b'] : ['thing', 'n', 'w'];
    write(`INSERT INTO ${table} (${columns.join(', ')}) VALUES ${Array.from({ length: 1 + next(4) }, () => `(${columns.map(value).join(', ')})`).join(', ')}`);
    if (round % 3 === 0) write(`UPDATE ${table} SET n = n + ${number()} WHERE w ${one(['=', '<', '>'])} '${one(WORDS)}'`);
    if (round % 5 === 0) write(`DELETE FROM ${table} WHERE n ${one(['<', '>', '='])} ${number()}`);
    if (round % 4 === 0) read(`SELECT ${one(columns)}, count(*) AS count FROM ${table} GROUP BY 1 HAVING count(*) >= ${next(3)} ORDER BY 2, 1`);
    if (round % 6 === 0) read(`SELECT t.w, p.w AS other, t.n + p.n AS sum FROM things t LEFT JOIN parts p ON p.thing = t.id ORDER BY t.id, p.rowid LIMIT 20`);
    if (round % 20 === 0) {
      read('SELECT id, w, n, b FROM things');
      read('SELECT count(*), sum(length(w)), min(n), max(w), group_concat(typeof(n)) FROM things');
    }
  }
  // What SQLite does by itself.
  for (const text of [
    'SELECT 1', 'select 1 as one, 2.0 as two, null as none, \'x\' as x', 'SELECT 9223372036854775807 AS most, -9223372036854775808 AS least, 0.1 + 0.2 AS sum, 1e300 * 10 AS large',
    "SELECT json_extract('{\"a\":[1,2]}', '$.a[1]') AS j", "SELECT date('2024-02-28', '+2 days') AS d, strftime('%Y', '2024-01-01') AS y", 'SELECT abs(-9223372036854775808) AS over', 'SELECT row_number() OVER (ORDER BY id) AS r, id FROM things LIMIT 5',
    'SELECT * FROM things, parts LIMIT 3', 'SELECT id, id, id AS id FROM things LIMIT 2', 'SELECT', 'SELECT * FROM gone', 'SELECT gone FROM things', 'SELECT 1; SELECT 2', 'SELECT 1;', 'SELECT 1; -- more', 'SELECT ?', 'SELECT :a', "SELECT 'open", 'SELECT "not a column" AS s',
    "SELECT CAST(X'61ff62' AS TEXT) AS t", 'SELECT zeroblob(5) AS z', 'SELECT randomblob(-1) IS NULL AS r', "SELECT count(*) AS n FROM pragma_table_info('things')", 'SELECT name, sql FROM sqlite_master', "SELECT load_extension('x')", 'SELECT sqlite_version() IS NULL AS v', "SELECT 'a' LIKE 'A' AS l, 'ä' LIKE 'Ä' AS u", 'SELECT max(1, 2), round(2.5), 7 / 2, 7 % 3, 1 = 1', 'SELECT x FROM (VALUES (1), (2)) AS t(x)', 'SELECT column1 FROM (VALUES (1), (2))',
    'WITH x AS (SELECT 7 AS n) SELECT n FROM x', 'VALUES (1, 2)', 'PRAGMA table_info(parts)', 'PRAGMA user_version', ' -- why\nSELECT 1', 'EXPLAIN QUERY PLAN SELECT 1',
    'DELETE FROM things', 'INSERT INTO parts VALUES (1, 2, 3)', 'DROP TABLE parts', 'ATTACH \':memory:\' AS other', 'nonsense', '',
  ]) read(text);
  for (const text of [
    'SELECT 1', 'INSERT INTO gone VALUES (1)', 'INSERT INTO things (w) VALUES (NULL)', "INSERT INTO strict VALUES ('x', 1, 2)", "INSERT INTO strict VALUES (1, 'x', X'00')", "INSERT INTO things (w, n) VALUES ('same', 1), ('same', 1)", "INSERT OR IGNORE INTO things (w, n) VALUES ('same', 1), ('same', 1)", "INSERT INTO things (w, n) VALUES ('up', 1) ON CONFLICT DO UPDATE SET n = 2", 'INSERT INTO things DEFAULT VALUES',
    'INSERT INTO parts SELECT id, n, w FROM things', 'DELETE FROM things WHERE id IN (SELECT id FROM things LIMIT 1)', 'UPDATE things SET n = NULL', 'UPDATE things SET id = 1', 'DELETE FROM things WHERE 0',
    'CREATE INDEX i ON parts (n)', 'CREATE VIEW v AS SELECT w FROM things', 'CREATE TRIGGER tr AFTER INSERT ON parts BEGIN UPDATE things SET n = 0; END', 'INSERT INTO parts VALUES (1, 2, 3)', 'ALTER TABLE parts ADD COLUMN more DEFAULT 5', 'ALTER TABLE parts RENAME COLUMN more TO less', 'CREATE TABLE copy AS SELECT * FROM parts', 'CREATE VIRTUAL TABLE words USING fts5(text)', "INSERT INTO words VALUES ('some words here')", 'DROP INDEX i', 'DROP TRIGGER tr', 'DROP VIEW gone',
    'INSERT INTO parts VALUES (1, 2); DELETE FROM parts', 'UPDATE', '', 'BEGIN', 'ROLLBACK', 'DELETE FROM parts RETURNING gone',
    'PRAGMA writable_schema = ON', "ATTACH '/tmp/gone/x.db' AS x",
  ]) write(text);
  read("SELECT text FROM words WHERE words MATCH 'words'");
  for (const table of ['parts', 'copy', 'things']) read(`SELECT * FROM ${table} ORDER BY rowid`);
  read('SELECT * FROM v');
  // Of these the reference server keeps nothing, so they come last, each with a table of its own.
  write("REPLACE INTO things (id, w) VALUES (1, 'replaced')");
  write("WITH x AS (SELECT 'with' AS w) INSERT INTO things (w) SELECT w FROM x");
  write('/* all */ DELETE FROM copy WHERE n = 12345');
  write('PRAGMA user_version = 5');
  write('VACUUM');
  write("INSERT INTO things (w) VALUES ('ret') RETURNING id > 0 AS ok");
  ask('create_table', { query: '-- of all\nCREATE TABLE commented (a)' });
  for (const args of [{}, { query: 7 }, { query: null }, { sql: 'SELECT 1' }]) {
    ask('read_query', args);
    ask('write_query', args);
    ask('create_table', args);
  }
  ask('describe_table', {});
  ask('append_insight', {});
  ask('forget', {});
  for (const insight of ['Red sells', 'and\nBlue', '']) ask('append_insight', { insight });
  return all;
}

/** Lists of rows, written in Python and in JSON, as one and the same. */
const SAME = `
import ast, json, sys
def form(value):
    if isinstance(value, bytes): return "X'" + value.hex().upper() + "'"
    if isinstance(value, list): return [form(one) for one in value]
    if isinstance(value, dict): return {key: form(one) for key, one in value.items()}
    return value
def same(text):
    for read in (json.loads, ast.literal_eval):
        try: return json.dumps(form(read(text)))
        except (ValueError, SyntaxError): pass
    return text
json.dump([same(text) for text in json.load(sys.stdin)], sys.stdout)
`;

async function answers(server, asked) {
  const told = [];
  for (const { tool, args } of asked) {
    const { isError, content } = await server.call(tool, args);
    // The reference server tells its errors as if they were answers.
    told.push({ isError: isError === true || /^(Database error|Error): /.test(content[0].text), text: content[0].text });
  }
  return told;
}

function plain(python, told) {
  const input = JSON.stringify(told.map(({ text }) => text));
  const texts = JSON.parse(execFileSync(python, ['-c', SAME], { input, encoding: 'utf8', maxBuffer: 1 << 28 }));
  return told.map(({ isError }, at) => ({ result: { isError, content: [{ type: 'text', text: texts[at] }] } }));
}

export async function sqlite({ start, home, env, complain, show, python }) {
  const folder = join(home, 'sqlite');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, 'theirs'), { recursive: true });
  mkdirSync(join(folder, 'ours'));
  const theirs = await Server.start(join(dirname(python), 'mcp-server-sqlite'), ['--db-path', join(folder, 'theirs/shop.db')], { env });
  const granted = (access) => `dirs = [{ host = ${JSON.stringify(join(folder, 'ours'))}, guest = "/data", access = "${access}" }]`;
  const ours = await start('sqlite', granted('read-write'), 'config = { db_path = "shop.db" }');
  await lists('sqlite', theirs, ours, LISTED, complain);
  const empty = [await theirs.request('resources/read', { uri: URI }), await ours.request('resources/read', { uri: URI })];
  const asked = cases();
  const answered = [await answers(theirs, asked), await answers(ours, asked)];
  const memos = [empty, [await theirs.request('resources/read', { uri: URI }), await ours.request('resources/read', { uri: URI })]];
  for (const [one, other] of memos) {
    if (one.contents[0].text !== other.contents[0].text) complain(`sqlite: the memo is\n${other.contents[0].text}\nand not\n${one.contents[0].text}`);
  }
  const demo = await ours.request('prompts/get', { name: 'mcp-demo', arguments: { topic: 'bicycles' } });
  if (!demo.messages[0].content.text.includes('bicycles')) complain('sqlite: the prompt does not name its topic');
  judge('sqlite', asked, ...answered.map((told) => plain(python, told)), { intended: INTENDED, complain, show });
  await theirs.stop();
  await alone({ ours, start, granted, folder, python, complain });
}

/** What is asked of the plugin alone: many at once, statements and files that mean harm, and a call that is cut off. */
async function alone({ ours, start, granted, folder, python, complain }) {
  const ok = async (server, tool, args) => {
    const result = await server.call(tool, args);
    if (result.isError) complain(`sqlite: ${tool} ${JSON.stringify(args)} says ${result.content[0].text}`);
    return result.content[0].text;
  };
  const no = async (server, query, part, tool = 'write_query') => {
    const { isError, content } = await server.call(tool, { query });
    if (!isError || !content[0].text.includes(part)) complain(`sqlite: ${query} says ${content[0].text.slice(0, 500)}`);
  };
  const is = (what, one, other) => {
    if (one !== other) complain(`sqlite: ${what}: ${one} and not ${other}`);
  };

  // Two processes write and read at once, each in many instances.
  const second = await start('sqlite', granted('read-write'), 'config = { db_path = "shop.db" }');
  await ok(ours, 'create_table', { query: 'CREATE TABLE counts (n INTEGER)' });
  await ok(ours, 'write_query', { query: 'INSERT INTO counts VALUES (0), (0)' });
  const at = Array.from({ length: 120 }, (_, at) => [ours, second][at % 2]);
  const sums = await Promise.all(
    at.map((server, at) =>
      at % 3 === 0 ? ok(server, 'read_query', { query: 'SELECT max(n) = min(n) AS even FROM counts' }) : ok(server, 'write_query', { query: 'UPDATE counts SET n = n + 1' }),
    ),
  );
  is('concurrent readers see', [...new Set(sums)].sort().join(), '[{"affected_rows":2}],[{"even":1}]');
  is('80 writers at once leave', await ok(ours, 'read_query', { query: 'SELECT n FROM counts' }), '[{"n":80},\n{"n":80}]');

  // What would lead out of the database.
  writeFileSync(join(folder, 'ours/secret.db'), '');
  for (const query of ["ATTACH '/etc/passwd' AS x", "ATTACH '/data/secret.db' AS x", "ATTACH 'file:/data/secret.db?mode=ro' AS x", "VACUUM INTO '/data/copy.db'"]) await no(ours, query, 'ATTACH');
  for (const query of ["SELECT load_extension('/data/x.so')", "SELECT readfile('/etc/passwd')", "SELECT writefile('/data/x', 'y')"]) await no(ours, query, 'no such function', 'read_query');
  for (const query of ['PRAGMA writable_schema = ON', 'PRAGMA journal_mode = WAL', "PRAGMA temp_store_directory = '/data'", 'PRAGMA locking_mode = EXCLUSIVE']) await no(ours, query, 'PRAGMA');
  await no(ours, "UPDATE sqlite_master SET sql = 'x'", 'may not be modified');
  for (const query of ['SELECT 1 FROM counts; DELETE FROM counts', 'DELETE FROM counts; SELECT 1']) await no(ours, query, 'one statement', 'read_query');
  await no(ours, 'WITH x AS (SELECT 1) DELETE FROM counts', 'only reads', 'read_query');
  for (const query of ['SELECT zeroblob(1000000000)', 'SELECT hex(zeroblob(450000000))', "SELECT replace(hex(zeroblob(20000000)), '0', 'abcdefgh')"]) await no(ours, query, 'more memory', 'read_query');
  await no(ours, 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x, hex(zeroblob(1000)) FROM c', 'with LIMIT', 'read_query');
  is('after all that there is', await ok(ours, 'read_query', { query: 'SELECT n FROM counts LIMIT 1' }), '[{"n":80}]');

  // A call that is cut off while it writes is undone by the next.
  await ok(ours, 'create_table', { query: 'CREATE TABLE many (a, more)' });
  await ok(ours, 'write_query', { query: "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 100000) INSERT INTO many SELECT 'before', zeroblob(100) FROM c" });
  const hasty = await start('sqlite', granted('read-write'), 'config = { db_path = "shop.db" }\nlimits = { timeout_ms = 4000 }');
  // It comes to more rows than SQLite keeps in memory, and then to one that never ends.
  await no(hasty, 'UPDATE many SET a = (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE many.rowid > 60000) SELECT count(*) FROM c)', 'limit of 4000 ms');
  const left = () => readdirSync(join(folder, 'ours')).filter((name) => /-journal|\.lock/.test(name)).sort().join();
  is('a call that is cut off leaves', left(), 'shop.db-journal,shop.db.lock');
  is('of which the first byte is', readFileSync(join(folder, 'ours/shop.db-journal'))[0], 0xd9);
  is('the next reads', await ok(ours, 'read_query', { query: "SELECT count(*) AS n FROM many WHERE a = 'before'" }), '[{"n":100000}]');
  is('and leaves', left(), '');
  for (const server of [hasty, second, ours]) await server.stop();

  // Files as other programs have them.
  const run = (script) => execFileSync(python, ['-c', `import sqlite3, sys, os\n${script}`, join(folder, 'ours/other.db')], { encoding: 'utf8' });
  const other = await start('sqlite', granted('read-write'), 'config = { db_path = "/data/other.db" }');
  run("c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA journal_mode = WAL'); c.execute('CREATE TABLE t (a)'); c.execute('INSERT INTO t VALUES (7)'); c.commit(); c.close()");
  is('in WAL mode it reads', await ok(other, 'read_query', { query: 'SELECT a FROM t' }), '[{"a":7}]');
  await no(other, 'DELETE FROM t', 'journal_mode = DELETE');
  run("c = sqlite3.connect(sys.argv[1]); c.execute('INSERT INTO t VALUES (8)'); c.commit(); os._exit(0)");
  await no(other, 'SELECT a FROM t', 'WAL mode', 'read_query');
  run("c = sqlite3.connect(sys.argv[1]); c.execute('PRAGMA journal_mode = DELETE'); c.close()");
  is('after that it changes', await ok(other, 'write_query', { query: 'UPDATE t SET a = a + 1' }), '[{"affected_rows":2}]');
  is('what others read is', run("print(sqlite3.connect(sys.argv[1]).execute('SELECT sum(a) FROM t').fetchone()[0])").trim(), '17');
  await other.stop();

  // Where it may only read.
  copyFileSync(join(folder, 'ours/shop.db'), join(folder, 'ours/read.db'));
  const reader = await start('sqlite', granted('read'), 'config = { db_path = "read.db" }');
  is('it reads', await ok(reader, 'read_query', { query: 'SELECT n FROM counts LIMIT 1' }), '[{"n":80}]');
  await no(reader, 'DELETE FROM counts', 'read-only access to');
  await reader.stop();
  is('the folder contains only', readdirSync(join(folder, 'ours')).sort().join(), 'other.db,read.db,secret.db,shop.db,shop.db.insights.json');
}
