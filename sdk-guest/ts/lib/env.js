// The variables that the operator lets the plugin see.

import { getEnvironment } from "wasi:cli/environment@0.2.0";

export const env = (name) => getEnvironment().find(([key]) => key === name)?.[1];
