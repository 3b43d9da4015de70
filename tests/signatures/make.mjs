// Makes signatures for the tests of `host/trust`, with sigstore's own signing library and with @sigstore/mock, which has a certificate
// authority, a transparency log and a timestamp authority whose keys live as long as this process.
//
// node make.mjs --modules NODE_MODULES --to FOLDER
//
// Writes what was signed (`component`, `manifest.json`), the authorities (`root.json`, `root-times.json` without logs, and
// `root-other.json` of another instance), and a bundle for each case.
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

const { values } = parseArgs({ options: { modules: { type: "string" }, to: { type: "string" } } });
const require = createRequire(join(resolve(values.modules), "anything.js"));
const { initializeCA, initializeCTLog, initializeTLog, initializeTSA, rekorHandler, tsaHandler } = require("@sigstore/mock");
const { bundleToJSON } = require("@sigstore/bundle");
const { DSSEBundleBuilder, MessageSignatureBundleBuilder, RekorWitness, TSAWitness } = require("@sigstore/sign");
const { TrustedRoot } = require("@sigstore/protobuf-specs");

const WORKFLOW = "https://github.com/acme/fetch/.github/workflows/release.yml";
const ISSUER = "https://token.actions.githubusercontent.com";
const HOUR = 3_600_000;

// Time stands still at a whole second: @sigstore/mock writes fractions of one in a form that not everybody reads, and no certificate begins
// after it was used.
const NOW = Math.floor(Date.now() / 1000) * 1000;
globalThis.Date = class extends Date {
  constructor(...time) {
    super(...(time.length ? time : [NOW]));
  }
  static now() {
    return NOW;
  }
};

// What is signed. The component is the empty one, in the binary format.
const component = Buffer.from("0061736d0d000100", "hex");
const manifest = Buffer.from(
  JSON.stringify({
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.manifest.v1+json",
    layers: [{ mediaType: "application/wasm", digest: `sha256:${sha256(component)}`, size: component.length }],
  }),
);

function sha256(bytes) {
  return createHash("sha256").update(bytes).digest("hex");
}

function pem(der) {
  const lines = Buffer.from(der).toString("base64").match(/.{1,64}/g);
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}

// What a log stores of an entry that is proposed: of a statement the digests alone. @sigstore/mock stores what is proposed.
function stored(body) {
  const proposed = JSON.parse(body);
  if (proposed.kind !== "dsse") return body.toString();
  const { envelope, verifiers } = proposed.spec.proposedContent;
  const { payload, signatures } = JSON.parse(envelope);
  const digest = (bytes) => ({ algorithm: "sha256", value: sha256(bytes) });
  return JSON.stringify({
    ...proposed,
    spec: {
      envelopeHash: digest(envelope),
      payloadHash: digest(Buffer.from(payload, "base64")),
      signatures: signatures.map(({ sig }, at) => ({ signature: sig, verifier: verifiers[at] })),
    },
  });
}

// An instance of sigstore. `certified` is the clock of the certificate authority, `signed` that of the log and of the timestamp authority.
async function instance({ certified, signed } = {}) {
  const keys = () => generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const ctlog = await initializeCTLog(keys(), certified);
  const ca = await initializeCA(keys(), ctlog, certified);
  const tlog = await initializeTLog("https://rekor.example", keys(), signed);
  const tsa = await initializeTSA(keys(), signed);
  const handlers = [rekorHandler(tlog), tsaHandler(tsa)];
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const { fn } = handlers.find(({ path }) => path === request.url);
    const body = Buffer.concat(parts);
    const answer = await fn(request.url.endsWith("/entries") ? stored(body) : body);
    response.writeHead(answer.statusCode, { "content-type": answer.contentType ?? "text/plain" });
    response.end(answer.response);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${server.address().port}`;
  return { ca, ctlog, tlog, tsa, url, close: () => server.close() };
}

// The authorities of instances, as a sigstore instance publishes them.
function root(instances, { logs = true } = {}) {
  const validFor = { start: new Date(NOW - HOUR) };
  const key = (der) => ({ rawBytes: Buffer.from(der), keyDetails: 5, validFor });
  const log = (baseUrl, der) => ({
    baseUrl,
    hashAlgorithm: 1,
    publicKey: key(der),
    logId: { keyId: createHash("sha256").update(der).digest() },
    operator: "",
  });
  const authority = (uri, ...certificates) => ({
    uri,
    subject: { commonName: "sigstore", organization: "sigstore.mock" },
    certChain: { certificates: certificates.map((rawBytes) => ({ rawBytes: Buffer.from(rawBytes) })) },
    validFor,
    operator: "",
  });
  return TrustedRoot.toJSON({
    mediaType: "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
    certificateAuthorities: instances.map(({ ca }) => authority("https://fulcio.example", ca.rootCertificate)),
    timestampAuthorities: instances.map(({ tsa }) => authority("https://tsa.example", tsa.intCertificate, tsa.rootCertificate)),
    tlogs: logs ? instances.map(({ tlog }) => log("https://rekor.example", tlog.publicKey)) : [],
    ctlogs: logs ? instances.map(({ ctlog }) => log("https://ctfe.example", ctlog.publicKey)) : [],
  });
}

// Signs with a key of its own, for which the certificate authority issues a certificate, as for a workflow that logged in.
function signer({ ca }, subject, issuer) {
  return {
    sign: async (data) => {
      const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
      const certificate = await ca.issueCertificate({
        publicKey: publicKey.export({ type: "spki", format: "der" }),
        subjectAltName: subject,
        extensions: [
          { oid: "1.3.6.1.4.1.57264.1.1", value: issuer, legacy: true },
          { oid: "1.3.6.1.4.1.57264.1.8", value: issuer },
        ],
      });
      return { key: { $case: "x509Certificate", certificate: pem(certificate) }, signature: sign("sha256", data, privateKey) };
    },
  };
}

async function bundle(from, artifact, { subject = `${WORKFLOW}@refs/tags/v1.2.0`, issuer = ISSUER, log = true, time = true } = {}) {
  const witnesses = [];
  if (log) witnesses.push(new RekorWitness({ rekorBaseURL: from.url, entryType: "dsse" }));
  if (time) witnesses.push(new TSAWitness({ tsaBaseURL: from.url }));
  const options = { signer: signer(from, subject, issuer), witnesses };
  const builder = artifact.type ? new DSSEBundleBuilder(options) : new MessageSignatureBundleBuilder(options);
  return bundleToJSON(await builder.create(artifact));
}

function statement(predicateType, bytes) {
  const subject = [{ name: "fetch", digest: { sha256: sha256(bytes) } }];
  const text = JSON.stringify({ _type: "https://in-toto.io/Statement/v1", subject, predicateType, predicate: {} });
  return { data: Buffer.from(text), type: "application/vnd.in-toto+json" };
}

const here = await instance();
const elsewhere = await instance();
// Its certificates are valid for ten minutes, and were issued half an hour before the log and the timestamp authority saw the signature.
const late = await instance({ certified: new Date(NOW - HOUR / 2) });
// Its log and timestamp authority are a day ahead, and so are its certificates.
const early = await instance({ certified: new Date(NOW + 24 * HOUR - 60_000), signed: new Date(NOW + 24 * HOUR) });
const SIGN = "https://sigstore.dev/cosign/sign/v1";

const files = {
  "root.json": root([here, late, early]),
  "root-other.json": root([elsewhere]),
  "root-times.json": root([here, early], { logs: false }),
  "component.json": await bundle(here, { data: component }),
  "manifest-message.json": await bundle(here, { data: manifest }),
  "manifest-statement.json": await bundle(here, statement(SIGN, manifest)),
  "provenance.json": await bundle(here, statement("https://slsa.dev/provenance/v1", component)),
  "next-release.json": await bundle(here, { data: component }, { subject: `${WORKFLOW}@refs/tags/v1.3.0` }),
  "branch.json": await bundle(here, { data: component }, { subject: `${WORKFLOW}@refs/heads/main` }),
  "other-subject.json": await bundle(here, { data: component }, { subject: `${WORKFLOW.replace("acme", "evil")}@refs/tags/v1.2.0` }),
  "other-issuer.json": await bundle(here, { data: component }, { issuer: "https://login.example" }),
  "other-artifact.json": await bundle(here, { data: Buffer.from("something else") }),
  "other-statement-subject.json": await bundle(here, statement(SIGN, Buffer.from("something else"))),
  "scan.json": await bundle(here, statement("https://cosign.sigstore.dev/attestation/vuln/v1", component)),
  "other-instance.json": await bundle(elsewhere, { data: component }),
  "expired.json": await bundle(late, { data: component }),
  "early.json": await bundle(early, { data: component }, { log: false }),
  "time-only.json": await bundle(here, { data: component }, { log: false }),
  "log-only.json": await bundle(here, { data: component }, { time: false }),
};

mkdirSync(values.to, { recursive: true });
writeFileSync(join(values.to, "component"), component);
writeFileSync(join(values.to, "manifest.json"), manifest);
for (const [name, json] of Object.entries(files)) writeFileSync(join(values.to, name), `${JSON.stringify(json, null, 1)}\n`);
for (const one of [here, elsewhere, late, early]) one.close();
