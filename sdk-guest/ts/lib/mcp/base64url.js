// The encoding `base64url` of `Buffer`, which the package that takes its place lacks. It reads both alphabets as `base64`.

import { Buffer } from "node:buffer";

const isUrl = (encoding) => typeof encoding === "string" && encoding.toLowerCase() === "base64url";
const read = (given) => given.map((one, index) => (index && isUrl(one) ? "base64" : one));

function replace(target, name, made) {
  const own = target[name];
  Object.defineProperty(target, name, { value: made(own), configurable: true, writable: true });
}

for (const name of ["from", "byteLength", "alloc"])
  replace(
    Buffer,
    name,
    (own) =>
      (...given) =>
        own.apply(Buffer, read(given)),
  );
for (const name of ["write", "fill", "indexOf", "lastIndexOf", "includes"])
  replace(
    Buffer.prototype,
    name,
    (own) =>
      function (...given) {
        return own.apply(this, read(given));
      },
  );
replace(Buffer, "isEncoding", (own) => (name) => isUrl(name) || own(name));
replace(
  Buffer.prototype,
  "toString",
  (own) =>
    function (encoding, ...range) {
      if (!isUrl(encoding)) return own.call(this, encoding, ...range);
      return own.call(this, "base64", ...range).replace(/[+/=]/g, (one) => ({ "+": "-", "/": "_", "=": "" })[one]);
    },
);
