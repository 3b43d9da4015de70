// TextEncoder and TextDecoder for engines without them.

export class TextEncoder {
  get encoding() {
    return "utf-8";
  }
  encode(text = "") {
    const given = String(text).toWellFormed();
    const bytes = new Uint8Array(given.length * 3);
    let length = 0;
    for (let at = 0; at < given.length; at++) {
      const code = given.codePointAt(at);
      if (code < 0x80) {
        bytes[length++] = code;
        continue;
      }
      const more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
      bytes[length++] = LEADS[more] | (code >> (6 * more));
      for (let left = more - 1; left >= 0; left--) bytes[length++] = 0x80 | ((code >> (6 * left)) & 0x3f);
      if (more === 3) at++;
    }
    return bytes.slice(0, length);
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
    const bytes = ArrayBuffer.isView(input)
      ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength)
      : new Uint8Array(input);
    // The string is built in chunks, because appending single characters would copy it each time.
    const pieces = [];
    let codes = [];
    for (let at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0; at < bytes.length;) {
      const [code, length] = point(bytes, at);
      if (code === undefined && this.#fatal) throw new TypeError("the bytes are not UTF-8");
      codes.push(code ?? 0xfffd);
      at += length;
      if (codes.length === 4096 || at >= bytes.length) {
        pieces.push(String.fromCodePoint(...codes));
        codes = [];
      }
    }
    return pieces.join("");
  }
}

/** The high bits of the first byte, by the number of bytes that follow it. */
const LEADS = [0, 0xc0, 0xe0, 0xf0];

/** The range of the second byte after first bytes with which not all of 0x80 to 0xbf is valid. */
const SECOND = { 0xe0: [0xa0, 0xbf], 0xed: [0x80, 0x9f], 0xf0: [0x90, 0xbf], 0xf4: [0x80, 0x8f] };

/** Returns the code point at a position and its length in bytes; no code point if the bytes are invalid. */
function point(bytes, at) {
  const lead = bytes[at];
  if (lead < 0x80) return [lead, 1];
  if (lead < 0xc2 || lead > 0xf4) return [undefined, 1];
  const length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  let code = lead & (0xff >> (length + 1));
  for (let next = 1; next < length; next++) {
    const [least, most] = (next === 1 && SECOND[lead]) || [0x80, 0xbf];
    const byte = bytes[at + next];
    if (byte === undefined || byte < least || byte > most) return [undefined, next];
    code = (code << 6) | (byte & 0x3f);
  }
  return [code, length];
}
