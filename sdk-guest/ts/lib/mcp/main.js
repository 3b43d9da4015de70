// The first module of the bundle: everything that the build's last lines need, under one name.

import "./globals.js";
import * as time from "./build-time.js";
import { liveCode } from "../live-code.js";
import { serve } from "./exports.js";
import * as server from "./server.js";
import { rehearse } from "./rehearse.js";
import * as wire from "./wire.js";

globalThis.__wharf = { serve, rehearse, time, server, wire, liveCode };
