// The same plugin for the engine QuickJS, which has no `fetch`.
import { plugin } from "wharf-sdk";

import { parts } from "./parts.js";

export default plugin(parts);
