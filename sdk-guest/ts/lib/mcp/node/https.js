// `node:https` for clients: `http.js` with another scheme.

import { Agent, client } from "./http.js";

export { Agent };
export const { request, get } = client("https:");
export const globalAgent = new Agent();

export default { Agent, get, globalAgent, request };
