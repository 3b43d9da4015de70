// Sends the HTTP requests of a server in Node.js through the proxy of the tests: `node --import proxied.mjs SERVER`. Node.js 20 has no option
// for that, and a variable such as HTTPS_PROXY is read by some clients only.

import http from "node:http";
import https from "node:https";

import { HttpProxyAgent } from "http-proxy-agent";
import { HttpsProxyAgent } from "https-proxy-agent";
import { EnvHttpProxyAgent, setGlobalDispatcher } from "undici";

const { EXISTING_PROXY: proxy } = process.env;
if (proxy) {
  setGlobalDispatcher(new EnvHttpProxyAgent({ httpProxy: proxy, httpsProxy: proxy, noProxy: "127.0.0.1,localhost" }));
  http.globalAgent = new HttpProxyAgent(proxy);
  https.globalAgent = new HttpsProxyAgent(proxy);
}
