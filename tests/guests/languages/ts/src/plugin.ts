// The fixture that the official MCP conformance suite expects on a server, and then the abilities of a plugin in this
// language. The reference is `tests/guests/conformance`, in Rust.
import { plugin } from "wharf-sdk";

import { fetching } from "./fetching.js";
import { parts } from "./parts.js";

export default plugin([parts, fetching]);
