// UTF-8 for engines without it.

export class TextEncoder {
  get encoding() {
    return "utf-8";
  }
  encode(text = "") {
    const escaped = unescape(encodeURIComponent(String(text).toWellFormed()));
    return Uint8Array.from(escaped, (character) => character.charCodeAt(0));
  }
}

export class TextDecoder {
  #fatal;
  constructor(encoding = "utf-8", { fatal = false } = {}) {
    if (!/^utf-?8$/i.test(encoding)) throw new RangeError(`only UTF-8 can be decoded here, not ${encoding}`);
    this.#fatal = fatal;
  }
  get encoding() {
    return "utf-8";
  }
  decode(input = new Uint8Array()) {
    const bytes = ArrayBuffer.isView(input) ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength) : new Uint8Array(input);
    let text = "";
    for (let at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0; at < bytes.length; ) {
      const [code, length] = point(bytes, at);
      if (code === undefined && this.#fatal) throw new TypeError("the bytes are not UTF-8");
      text += code === undefined ? "\ufffd" : String.fromCodePoint(code);
      at += length;
    }
    return text;
  }
}

const LEAST = [0, 0, 0x80, 0x800, 0x10000];

/** The code point that begins here, and how many bytes it takes; none where the bytes are wrong. */
function point(bytes, at) {
  const lead = bytes[at];
  if (lead < 0x80) return [lead, 1];
  const length = lead >= 0xf0 && lead < 0xf5 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (!length || lead >= 0xf5) return [undefined, 1];
  let code = lead & (0xff >> (length + 1));
  for (let next = 1; next < length; next++) {
    const byte = bytes[at + next];
    if (byte === undefined || (byte & 0xc0) !== 0x80) return [undefined, next];
    code = (code << 6) | (byte & 0x3f);
  }
  const wrong = code < LEAST[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff);
  return wrong ? [undefined, 1] : [code, length];
}
