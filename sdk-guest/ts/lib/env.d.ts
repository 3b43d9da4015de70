/** A variable that the operator lets the plugin see. Of a secret it is a placeholder, which wharf replaces in requests. */
export function env(name: string): string | undefined;
