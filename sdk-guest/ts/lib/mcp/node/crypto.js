// `node:crypto`: hashes, HMAC, random numbers and the web's part.

import { hmac } from "@noble/hashes/hmac.js";
import { md5, sha1 } from "@noble/hashes/legacy.js";
import { sha224, sha256, sha384, sha512 } from "@noble/hashes/sha2.js";
import { sha3_256, sha3_512 } from "@noble/hashes/sha3.js";
import { Buffer } from "node:buffer";

const HASHES = { md5, sha1, sha224, sha256, sha384, sha512, "sha3-256": sha3_256, "sha3-512": sha3_512 };

function hashOf(name) {
  const found =
    HASHES[
      String(name)
        .toLowerCase()
        .replace(/^rsa-|^sha-/, (start) => (start === "sha-" ? "sha" : ""))
    ];
  if (!found) throw new Error(`the hash ${name} does not exist in a plugin; it has: ${Object.keys(HASHES).join(", ")}`);
  return found;
}

const bytes = (data, encoding) =>
  typeof data === "string"
    ? Buffer.from(data, encoding)
    : new Uint8Array(data.buffer ?? data, data.byteOffset, data.byteLength);

/** A hash to which data are added piece by piece. */
export class Hash {
  #state;
  constructor(state) {
    this.#state = state;
  }
  update(data, encoding) {
    this.#state.update(bytes(data, encoding));
    return this;
  }
  digest(encoding) {
    const made = Buffer.from(this.#state.digest());
    return encoding && encoding !== "buffer" ? made.toString(encoding) : made;
  }
  copy() {
    return new Hash(this.#state.clone());
  }
}

export const createHash = (name) => new Hash(hashOf(name).create());
export const createHmac = (name, key) => new Hash(hmac.create(hashOf(name), bytes(key)));
export const hash = (name, data, encoding = "hex") => createHash(name).update(data).digest(encoding);
export const getHashes = () => Object.keys(HASHES);

export const webcrypto = globalThis.crypto;
export const { subtle } = globalThis.crypto ?? {};
export const randomUUID = () => globalThis.crypto.randomUUID();
export const getRandomValues = (array) => globalThis.crypto.getRandomValues(array);

export function randomFillSync(array) {
  const view = new Uint8Array(array.buffer ?? array, array.byteOffset, array.byteLength);
  // One request for random numbers has at most 65,536 bytes.
  for (let at = 0; at < view.length; at += 65536) globalThis.crypto.getRandomValues(view.subarray(at, at + 65536));
  return array;
}

export function randomBytes(count, done) {
  const made = randomFillSync(Buffer.alloc(count));
  if (!done) return made;
  queueMicrotask(() => done(null, made));
  return undefined;
}

export function randomInt(least, most, done) {
  const [from, to] = typeof most === "number" ? [least, most] : [0, least];
  const whole = randomBytes(6).readUIntBE(0, 6);
  const made = from + (whole % (to - from));
  const then = typeof most === "function" ? most : done;
  if (!then) return made;
  queueMicrotask(() => then(null, made));
  return undefined;
}

export function timingSafeEqual(one, other) {
  if (one.byteLength !== other.byteLength) throw new RangeError("Input buffers must have the same byte length");
  let differs = 0;
  for (let at = 0; at < one.byteLength; at++) differs |= one[at] ^ other[at];
  return differs === 0;
}

const lacking = (name) =>
  function () {
    throw new Error(
      `crypto.${name} does not exist in a plugin: it has hashes, HMAC and random numbers, and \`crypto.subtle\``,
    );
  };
export const createCipheriv = lacking("createCipheriv");
export const createDecipheriv = lacking("createDecipheriv");
export const createSign = lacking("createSign");
export const createVerify = lacking("createVerify");
export const createPrivateKey = lacking("createPrivateKey");
export const createPublicKey = lacking("createPublicKey");
export const generateKeyPairSync = lacking("generateKeyPairSync");
export const pbkdf2Sync = lacking("pbkdf2Sync");
export const scryptSync = lacking("scryptSync");
export const constants = {};

export default {
  Hash,
  createHash,
  createHmac,
  hash,
  getHashes,
  webcrypto,
  subtle,
  randomUUID,
  getRandomValues,
  randomFillSync,
  randomBytes,
  randomInt,
  timingSafeEqual,
  createCipheriv,
  createDecipheriv,
  createSign,
  createVerify,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  pbkdf2Sync,
  scryptSync,
  constants,
};
