// Prints the links of a file, each with the name and the line that it adds. Clients are programs in JavaScript, and decode them so.
const links = require("fs").readFileSync(process.argv[2], "utf8").match(/(?<=\]\()[^)]+/g).map((link) => new URL(link));
function decoded(url) {
  const one = url.searchParams;
  switch (url.protocol + url.host + url.pathname) {
    case "goose:extension": return { name: one.get("name"), command: one.get("cmd"), args: one.getAll("arg") };
    case "cursor:anysphere.cursor-deeplink/mcp/install": case "https:cursor.com/en/install-mcp":
      return { name: one.get("name"), ...JSON.parse(Buffer.from(one.get("config"), "base64").toString()) };
    case "https:insiders.vscode.dev/redirect": return decoded(new URL(one.get("url")));
    case "vscode:mcp/install": return JSON.parse(decodeURIComponent(url.search.slice(1)));
    default: return { file: url.href };
  }
}
console.log(JSON.stringify(links.map(decoded)));
