// What a person with a browser does to log in: follow redirects, say who they are, agree, and be sent back to the client.

import { REDIRECT } from './provider.mjs';

/** More redirects than any login has. */
const MANY = 20;
const STEP_MS = 10_000;

/** Cookies by name, each with the path that it is for. */
class Cookies {
  #kept = new Map();

  take(response) {
    for (const line of response.headers.getSetCookie()) {
      const [pair, ...attributes] = line.split(';').map((part) => part.trim());
      const at = pair.indexOf('=');
      const path = attributes.find((one) => /^path=/i.test(one))?.slice('path='.length) ?? '/';
      this.#kept.set(`${pair.slice(0, at)} ${path}`, { pair, path });
    }
  }

  of(url) {
    const fits = [...this.#kept.values()].filter(({ path }) => url.pathname.startsWith(path));
    return fits.map(({ pair }) => pair).join('; ');
  }
}

/** Logs in at `url` as `account`, in a browser without a past. The parameters with which the client is called back. */
export async function logIn(url, account) {
  const cookies = new Cookies();
  let request = { url: new URL(url), form: undefined };
  for (let step = 0; step < MANY; step += 1) {
    if (request.url.href.startsWith(REDIRECT)) return request.url.searchParams;
    const response = await fetch(request.url, {
      method: request.form ? 'POST' : 'GET',
      body: request.form,
      headers: { Cookie: cookies.of(request.url) },
      redirect: 'manual',
      signal: AbortSignal.timeout(STEP_MS),
    });
    cookies.take(response);
    const location = response.headers.get('location');
    if (location) {
      await response.body?.cancel();
      request = { url: new URL(location, request.url), form: undefined };
    } else if (response.ok && request.form === undefined) {
      const { prompt } = await response.json();
      request = { url: request.url, form: new URLSearchParams(prompt === 'login' ? { account } : { agree: 'yes' }) };
    } else {
      throw new Error(`the provider answered ${response.status} at ${request.url.pathname}: ${await response.text()}`);
    }
  }
  throw new Error(`more than ${MANY} redirects from ${url}`);
}
