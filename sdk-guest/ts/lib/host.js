// What a plugin may call while it runs. `serve` puts in wharf itself; elsewhere, such as in a unit test, there is none.

let host;

export function setHost(given) {
  host = given;
}

function outside() {
  if (!host) throw new Error("there is no wharf here: this works only while a plugin answers a call");
  return host;
}

/** The plugin's table from the operator's file. */
export const config = () => JSON.parse(outside().config());

/** The directories that are open to this call. */
export const directories = () =>
  outside()
    .directories()
    .map(({ path, writable }) => ({ path, writable }));

export function log(level, message, data) {
  outside().log(level, String(message), data === undefined ? undefined : JSON.stringify(data));
}

export function progress(done, total, message) {
  outside().progress(done, total, message);
}

/** This plugin's own `tools`, `resources` or `prompts` are others than before. */
export const listChanged = (which) => outside().listChanged(which);

export const resourceUpdated = (uri) => outside().resourceUpdated(uri);
