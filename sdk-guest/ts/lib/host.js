// The functions of wharf that a running plugin can call. `serve` sets the host; elsewhere, such as in a unit test, there is no host.

/** The folder that `wharf dev` opens to a plugin that was built for it. It is not among the plugin's directories. */
export const LIVE = "/.wharf-live";

let host;

export function setHost(given) {
  host = given;
}

function outside() {
  if (!host) throw new Error("wharf is not available here: this works only while a plugin answers a call");
  return host;
}

/** Returns the plugin's table from the operator's config file. */
export const config = () => JSON.parse(outside().config());

/** Returns the directories that are open to this call. */
export const directories = () =>
  outside()
    .directories()
    .filter(({ path }) => path !== LIVE)
    .map(({ path, writable }) => ({ path, writable }));

export function log(level, message, data) {
  outside().log(level, String(message), data === undefined ? undefined : JSON.stringify(data));
}

export function progress(done, total, message) {
  outside().progress(done, total, message);
}

/** Announces that this plugin's list of `tools`, `resources` or `prompts` changed. */
export const listChanged = (which) => outside().listChanged(which);

export const resourceUpdated = (uri) => outside().resourceUpdated(uri);
