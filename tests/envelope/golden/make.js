// Sealed content as Node programs write it, in every layout and from every form of the key.
//
//     node make.js > golden.json
//
// Node's own crypto alone. Our own layout is written here a second time, from its description.

"use strict";
const crypto = require("node:crypto");

const KEY_TEXT = "8f3c1d5e7a9b0c2d4e6f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5";
const USER_ID = "6F1E2D3C-4B5A-4678-9ABC-DEF012345678";
const KEY_VERSION = 3;
const PLAINS = [
  "Prefers window seats.",
  "a",
  "Grüße aus Zürich \u{1F30D}\u0000 – naïve café, 東京\n\tsecond line",
  "0123456789abcdef".repeat(4),
];

const KEYS = {
  "": Buffer.from(KEY_TEXT, "hex"),
  "@ascii": Buffer.from(KEY_TEXT.slice(0, 32), "ascii"),
  "@sha256": crypto.createHash("sha256").update(KEY_TEXT).digest(),
};

const ALPHABETS = {
  hex: (bytes) => bytes.toString("hex"),
  HEX: (bytes) => bytes.toString("hex").toUpperCase(),
  base64: (bytes) => bytes.toString("base64"),
  base64url: (bytes) => bytes.toString("base64url"),
  "base64url padded": (bytes) => bytes.toString("base64").replaceAll("+", "-").replaceAll("/", "_"),
};

function aead(algorithm, key, ivBytes, plain, bound) {
  const iv = crypto.randomBytes(ivBytes);
  const cipher = crypto.createCipheriv(algorithm, key, iv, { authTagLength: 16 });
  if (bound) cipher.setAAD(bound);
  const ct = Buffer.concat([cipher.update(plain, "utf8"), cipher.final()]);
  return { iv, ct, tag: cipher.getAuthTag() };
}

function memframe(key, plain) {
  const field = (text) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(Buffer.byteLength(text));
    return Buffer.concat([length, Buffer.from(text)]);
  };
  const bound = Buffer.concat(["mf1", USER_ID.toLowerCase(), String(KEY_VERSION)].map(field));
  const { iv, ct, tag } = aead("aes-256-gcm", key, 12, plain, bound);
  return `mf1.${KEY_VERSION}.${Buffer.concat([iv, ct, tag]).toString("base64")}`;
}

function jwe(key, plain) {
  const header = Buffer.from(JSON.stringify({ alg: "dir", enc: "A256GCM" })).toString("base64url");
  const { iv, ct, tag } = aead("aes-256-gcm", key, 12, plain, Buffer.from(header, "ascii"));
  return [header, "", ...[iv, ct, tag].map(ALPHABETS.base64url)].join(".");
}

function fernet(key, plain) {
  const iv = crypto.randomBytes(16);
  const cipher = crypto.createCipheriv("aes-128-cbc", key.subarray(16), iv);
  const head = Buffer.alloc(9);
  head.writeUInt8(0x80);
  head.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 1000)), 1);
  const body = Buffer.concat([head, iv, cipher.update(plain, "utf8"), cipher.final()]);
  const mac = crypto.createHmac("sha256", key.subarray(0, 16)).update(body).digest();
  return ALPHABETS["base64url padded"](Buffer.concat([body, mac]));
}

function cbc(key, plain, encode) {
  const iv = crypto.randomBytes(16);
  const cipher = crypto.createCipheriv("aes-256-cbc", key, iv);
  return `${encode(iv)}:${encode(Buffer.concat([cipher.update(plain, "utf8"), cipher.final()]))}`;
}

function opensslSalted(plain) {
  const salt = crypto.randomBytes(8);
  let derived = Buffer.alloc(0);
  for (let last = Buffer.alloc(0); derived.length < 48; derived = Buffer.concat([derived, last])) {
    last = crypto.createHash("md5").update(Buffer.concat([last, Buffer.from(KEY_TEXT), salt])).digest();
  }
  const cipher = crypto.createCipheriv("aes-256-cbc", derived.subarray(0, 32), derived.subarray(32));
  const sealed = [Buffer.from("Salted__"), salt, cipher.update(plain, "utf8"), cipher.final()];
  return Buffer.concat(sealed).toString("base64");
}

function* joinedAndParted(key, plain) {
  for (const [alphabet, encode] of Object.entries(ALPHABETS)) {
    for (const ivBytes of [12, 16]) {
      const form = `${alphabet}, ${8 * ivBytes} bit nonce`;
      const { iv, ct, tag } = aead("aes-256-gcm", key, ivBytes, plain);
      yield ["gcm-iv-ct-tag", form, encode(Buffer.concat([iv, ct, tag]))];
      yield ["gcm-iv-tag-ct", form, encode(Buffer.concat([iv, tag, ct]))];
      yield ["gcm-iv:tag:ct", form, [iv, tag, ct].map(encode).join(":")];
      yield ["gcm-iv:ct:tag", form, [iv, ct, tag].map(encode).join(":")];
      yield ["gcm-json", form, JSON.stringify({ iv: encode(iv), data: encode(ct), tag: encode(tag) })];
    }
    const { iv, ct, tag } = aead("chacha20-poly1305", key, 12, plain);
    yield ["chacha20-poly1305", alphabet, encode(Buffer.concat([iv, ct, tag]))];
  }
}

function* mixed(key, plain) {
  const { iv, ct, tag } = aead("aes-256-gcm", key, 12, plain);
  const { hex, base64 } = ALPHABETS;
  yield ["gcm-iv:ct:tag", "base64 between hex", [hex(iv), base64(ct), hex(tag)].join(":")];
  yield ["gcm-iv:tag:ct", "hex, then base64", [hex(iv), hex(tag), base64(ct)].join(":")];
  const names = { alg: "aes-256-gcm", nonce: base64(iv), ciphertext: base64(ct), authTag: base64(tag) };
  yield ["gcm-json", "other names, indented", JSON.stringify(names, null, 2)];
  const others = { content: hex(ct), auth_tag: hex(tag), iv: hex(iv), algorithm: "AES-GCM" };
  yield ["gcm-json", "content and auth_tag, tabs", JSON.stringify(others, null, "\t")];
}

function* keyed(key, plain) {
  yield* joinedAndParted(key, plain);
  yield* mixed(key, plain);
  yield ["jwe", "compact", jwe(key, plain)];
  yield ["fernet", "token", fernet(key, plain)];
  yield ["cbc-iv:ct", "hex", cbc(key, plain, ALPHABETS.hex)];
  yield ["cbc-iv:ct", "base64", cbc(key, plain, ALPHABETS.base64)];
}

function* everything() {
  for (const plain of PLAINS) {
    for (const [derivation, key] of Object.entries(KEYS)) {
      if (derivation && plain !== PLAINS[0]) continue; // one text tells the forms of the key apart
      for (const [layout, form, sealed] of keyed(key, plain)) {
        yield { content_format: layout + derivation, form, plain, sealed };
      }
    }
    yield { content_format: "memframe", form: "own", plain, sealed: memframe(KEYS[""], plain) };
    yield { content_format: "openssl-salted", form: "base64", plain, sealed: opensslSalted(plain) };
  }
}

const head = JSON.stringify({ key: KEY_TEXT, user_id: USER_ID, key_version: KEY_VERSION }).slice(1, -1);
const rows = [...everything()].map((row) => JSON.stringify(row));
console.log(`{${head},"rows":[\n${rows.join(",\n")}\n]}`);
