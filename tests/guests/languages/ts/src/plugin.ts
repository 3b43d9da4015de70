// The fixture that the official MCP conformance suite wants to find on a server, and then the table of what a plugin in this
// language can do. The reference is `tests/guests/conformance`, in Rust.
import { plugin } from "wharf-sdk";

import { fetching } from "./fetching.js";
import { parts } from "./parts.js";

export default plugin([parts, fetching]);
