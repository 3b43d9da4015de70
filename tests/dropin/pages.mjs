// The sites that both fetch servers are sent to: servers on loopback, each with rules for robots of its own.

import { once } from 'node:events';
import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';

const LONG = 'The harbour wakes before the town does, and long before the first tram the boats have gone, with their lamps still lit. ';
const paragraph = (number) => `<p>${number}. ${LONG.repeat(3)}</p>`;
const article = (inside, head = '<title>Harbour</title>') =>
  `<!doctype html><html><head><meta charset="utf-8">${head}</head><body>` +
  `<nav><a href="/">Home</a><a href="/all">All</a></nav><article><h1>Harbour</h1>${paragraph(1)}${inside}${paragraph(2)}</article>` +
  '<aside class="sidebar"><ul><li><a href="/other">Other</a></li></ul></aside><footer>Imprint</footer></body></html>';

/** What is in an article, each to be written as Markdown. */
const INSIDE = {
  inline: '<p>Some <b>bold</b>, <strong> spaced </strong>, <em>slanted</em>, <i></i>, <del>gone</del>, <s>struck</s>, a<sub>1</sub>, b<sup>2</sup>, <kbd>Ctrl</kbd>, <q>said</q>.</p>',
  escapes: '<p>2 * 3 * 4, snake_case_name, 1. one, # two, - three, [x], &lt;tag&gt;, `tick`, a &amp; b, \u00a0nbsp, \\back</p>',
  headings: '<h2>Two <b>bold</b></h2><p>x</p><h3>Three\n lines</h3><p>y</p><h6>Six</h6><p>z</p>',
  links:
    '<p><a href="https://example.org/a?b=c#d">away</a> <a href="/rel">relative</a> <a href="#part">part</a> <a href="https://example.org">https://example.org/</a> ' +
    '<a href="https://example.org/a_b">https://example.org/a_b</a> <a href="https://example.org/" title="A &quot;title&quot;">titled</a> <a>nowhere</a> <a href="https://example.org/x"></a></p>',
  script: '<p>Click <a href="javascript:void(0)">here</a> or not.</p><script>alert(1)</script><style>p { }</style>',
  images:
    '<p>See <img src="https://example.org/i.png" alt="a picture" title="seen"> and <img src="rel.png"> there.</p><figure><img src="f.png" alt="fig"><figcaption>A caption</figcaption></figure>',
  lists:
    '<ul><li>one</li><li>two<ul><li>deep<ul><li>deeper<ul><li>deepest</li></ul></li></ul></li></ul></li><li><p>para</p><p>second</p></li><li></li></ul>' +
    '<ol><li>first</li><li>second<ol start="7"><li>seven</li><li>eight</li></ol></li></ol><ol start="9"><li>nine</li><li>ten</li></ol>',
  adjacent: '<p>Before</p><ul><li>item</li></ul>text after<ol><li>item</li></ol><ul><li>again</li></ul><p>After</p>',
  code: '<p>Run <code>ls -l *_x</code> or <code>a ` b</code> or <samp>out</samp>.</p><pre><code class="language-rust">fn main() {\n    let x_y = 1 * 2;\n\n}\n</code></pre><pre>\n\n plain\n  text  \n\n</pre>',
  quotes: '<blockquote><p>One</p><p>Two</p><blockquote>Three</blockquote></blockquote><blockquote>Plain<br>broken</blockquote>',
  breaks: '<p>One<br>two<br/>three</p><hr><p>Four &nbsp; five</p><div>Six<div>Seven</div>Eight</div>',
  table:
    '<table><thead><tr><th>Name</th><th>Size</th></tr></thead><tbody><tr><td>a_b</td><td>1</td></tr><tr><td><b>c</b><br>d</td><td><ul><li>e</li></ul></td></tr></tbody></table>',
  headless: '<table><tr><td>one cell of it</td><td colspan="2">two</td></tr><tr><td>x</td><td>y</td><td>z</td></tr></table>',
  caption: '<table><caption>Of boats</caption><tr><th>Boat</th><th>Men</th></tr><tr><td>Ann</td><td>4</td></tr><tr><th>Sum</th><td>4</td></tr></table>',
  definitions: '<dl><dt>Term</dt><dd>Meaning</dd><dd><p>Another</p><p>Longer</p></dd><dt>Next\none</dt><dd>Its own</dd></dl>',
  blanks: '<p>\n  Many   blanks\n\tand\r\n lines  <b> in </b>\n<i>it</i>\n</p>\n\n\n<div>\n<p>x</p>\n\n</div> y <span> z </span>',
  entities: '<p>caf&eacute; &mdash; &#x1F600; &copy; &nosuch; &amp;amp; \u65e5\u672c</p>',
  broken: '<p>Unclosed <b>bold <i>both</b> slanted</i><p>Next<div>In <span>it</p></div><li>stray</li><td>cell</td>',
  hidden: '<p style="display:none">not seen</p><p hidden>nor this</p><div class="comments"><p>A comment, of someone.</p></div><p>seen</p>',
  details: '<details><summary>More</summary><p>Of it</p></details><p><mark>marked</mark> <small>small</small> <u>under</u> <abbr title="x">abbr</abbr></p>',
  media: '<video src="https://example.org/v.mp4" poster="p.png">old</video><iframe src="https://example.org/"></iframe><p>and</p>',
  comments: '<!-- not shown --><p>a<!-- nor this -->b</p> <!-- or --> <p>c</p>',
};

const text = (status, type, body, more = {}) => ({ status, headers: { ...(type && { 'content-type': type }), ...more }, body });
const html = (body, type = 'text/html; charset=utf-8') => text(200, type, body);
const to = (location, status = 302) => text(status, 'text/html', 'elsewhere', { location });

/** What the sites answer, by path. */
function pages(others) {
  const all = {
    '/empty': html(''),
    '/blank': html('<html><body>  </body></html>'),
    '/short': html('<html><body><p>Hello.</p></body></html>'),
    '/words': html('just words, no elements at all'),
    '/no-type': text(200, undefined, article('')),
    '/xhtml': text(200, 'application/xhtml+xml', article('')),
    '/plain-page': text(200, 'text/plain', article('')),
    '/plain': text(200, 'text/plain', 'plain text\nof two lines'),
    '/json': text(200, 'application/json', '{"a":[1,2]}'),
    '/nothing': text(200, 'text/plain', ''),
    '/accents': text(200, 'text/plain; charset=utf-8', 'é😀日'.repeat(50)),
    '/latin1': text(200, 'text/plain; charset=iso-8859-1', Buffer.from('caf\u00e9 \u00fc', 'latin1')),
    '/wrong': text(200, 'text/plain', Buffer.from('caf\u00e9 \u00fc', 'latin1')),
    '/unknown-charset': text(200, 'text/plain; charset=x-none', 'caf\u00e9'),
    '/japanese': text(200, 'text/plain; charset=shift_jis', Buffer.from([0x93, 0xfa, 0x96, 0x7b])),
    '/meta': html(Buffer.from(article('<p>caf\u00e9</p>', '<meta charset="iso-8859-1">').replace('<meta charset="utf-8">', ''), 'latin1'), 'text/html'),
    '/marked': text(200, 'text/plain', '\ufeffmarked'),
    '/long': text(200, 'text/plain', '0123456789'.repeat(1200)),
    '/odd-root': html(article('').replace('<html>', '<html class="sidebar-visible">')),
    '/fragments': html(article('<p>A <a href="other.html#part">part of another</a> page.</p>')),
    '/zipped': text(200, 'text/plain', gzipSync('compressed'), { 'content-encoding': 'gzip' }),
    '/huge': text(200, 'text/plain', 'x'.repeat(3.5 * 1024 * 1024)),
    '/deep': html(article(`${'<div>'.repeat(450)}<p>deep</p>${'</div>'.repeat(450)}`)),
    '/cookie': text(302, 'text/plain', '', { location: '/cookie', 'set-cookie': 'seen=1' }),
    '/secret/page': html(article('')),
    '/secret/open': html(article('')),
    '/moved': to('/short', 301),
    '/found': to('short'),
    '/see-other': to('./short?x=1', 303),
    '/temporary': to('/moved', 307),
    '/permanent': to('/found', 308),
    '/to-secret': to('/secret/page'),
    '/to-closed': to('http://localhost:1/'),
    '/to-file': to('file:///etc/passwd'),
    '/to-nowhere': text(302, 'text/plain', 'led nowhere'),
    '/round': to('/round'),
    '/created': text(201, 'text/plain', 'made'),
    '/no-content': text(204, undefined, ''),
    '/choices': text(300, 'text/plain', 'choose', { location: '/short' }),
    ...Object.fromEntries([400, 401, 403, 404, 410, 418, 429, 500, 503].map((status) => [`/status/${status}`, text(status, 'text/plain', 'no')])),
    ...Object.fromEntries(Object.entries(others).map(([name, site]) => [`/to/${name}`, to(`${site}/short`)])),
  };
  for (const [name, inside] of Object.entries(INSIDE)) all[`/in/${name}`] = html(article(inside));
  return all;
}

/** The rules of each site for robots. */
const ROBOTS = {
  open: text(404, 'text/plain', 'User-agent: *\nDisallow: /'),
  rules: text(200, 'text/plain', '# ours\nUser-agent: *\nDisallow: /secret\nAllow: /secret/open # but not this\n'),
  named: text(200, 'text/plain', 'User-agent: ModelContextProtocol\nDisallow: /\n\nUser-agent: *\nAllow: /\n'),
  others: text(200, 'text/plain', 'User-agent: Googlebot\nDisallow: /\n'),
  page: html('<html><body>There are no rules here</body></html>'),
  unauthorized: text(401, 'text/plain', ''),
  forbidden: text(403, 'text/plain', ''),
  gone: text(410, 'text/plain', ''),
  broken: text(500, 'text/plain', 'User-agent: *\nDisallow: /'),
  fine: text(503, 'text/plain', 'busy'),
  moved: to('/rules.txt'),
  round: to('/robots.txt'),
};

export const PATHS = Object.keys(pages({}));
export const SITES = Object.keys(ROBOTS);

/** Starts all sites. Each request of a site is kept in `asked`, as its path and who asked. */
export async function start() {
  const asked = [];
  const servers = {};
  const urls = {};
  for (const site of SITES) {
    const answer = (request, response) => {
      const path = request.url.split('?')[0];
      asked.push({ site, path, agent: request.headers['user-agent'] });
      const rules = text(200, 'text/plain', 'User-agent: *\nDisallow: /secret');
      const all = { ...pages(urls), '/robots.txt': ROBOTS[site], '/rules.txt': rules };
      const known = path === '/cookie' && request.headers.cookie ? '/short' : path;
      const page = all[known] ?? text(404, 'text/plain', 'no');
      response.writeHead(page.status, page.headers).end(page.body);
    };
    servers[site] = createServer(answer).listen(0, 'localhost');
    await once(servers[site], 'listening');
    urls[site] = `http://localhost:${servers[site].address().port}`;
  }
  const stop = () => Object.values(servers).forEach((server) => server.close().closeAllConnections());
  return { urls, asked, stop };
}
