// The environment variables that the operator grants to the plugin.

import { getEnvironment } from "wasi:cli/environment@0.2.0";

export const env = (name) => getEnvironment().find(([key]) => key === name)?.[1];
