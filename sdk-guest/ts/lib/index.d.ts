// The types of wharf-sdk.

/// <reference path="./node.d.ts" />

/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | { [member: string]: Json };

/** A schema of any library that implements Standard Schema and Standard JSON Schema, such as zod, valibot or arktype. */
export interface StandardSchema<Input = any, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => Validated<Output> | Promise<Validated<Output>>;
    readonly jsonSchema: {
      readonly input: (options: { target: any }) => Record<string, unknown>;
      readonly output: (options: { target: any }) => Record<string, unknown>;
    };
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

type Validated<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: ReadonlyArray<{
        readonly message: string;
        readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined;
      }>;
    };

/** A hand-written JSON Schema of an object. wharf validates arguments by it. */
export interface JsonSchema {
  readonly type: "object";
  readonly properties?: { readonly [name: string]: unknown };
  readonly required?: readonly string[];
  readonly "~standard"?: undefined;
  readonly [keyword: string]: unknown;
}

export type Schema = StandardSchema | JsonSchema;

/** The type of a value that a schema has validated. */
export type Out<S> = S extends { readonly "~standard": { readonly types?: { readonly output: infer T } | undefined } }
  ? T
  : any;

/** The type of a value that a schema accepts. */
export type In<S> = S extends { readonly "~standard": { readonly types?: { readonly input: infer T } | undefined } }
  ? T
  : any;

type Awaitable<T> = T | PromiseLike<T>;

// ---- Content

declare const kind: unique symbol;

/** A content block, made by one of the functions below. */
export interface Content {
  readonly tag: "text" | "image" | "audio" | "link" | "embedded" | "raw";
  readonly val: unknown;
}

export function text(value: string): Content;
export function image(data: Uint8Array, mimeType?: string): Content;
export function audio(data: Uint8Array, mimeType?: string): Content;
/** A pointer to a resource, which need not be listed. */
export function link(
  uri: string,
  name: string,
  more?: {
    mimeType?: string;
    title?: string;
    description?: string;
    size?: number;
    annotations?: Json;
    icons?: Json;
    _meta?: Json;
  },
): Content;
/** A resource embedded in a result. */
export function embedded(uri: string, data: string | Uint8Array, mimeType?: string): Content;
/** A complete content block of MCP, for annotations, and for kinds without a function in this package. */
export function raw(block: { type: string; [member: string]: Json }): Content;

/** One item of a resource's contents. */
export interface Contents {
  readonly uri: string;
  readonly mimeType?: string | undefined;
  readonly body: { readonly tag: "text"; readonly val: string } | { readonly tag: "bytes"; readonly val: Uint8Array };
  readonly more?: string | undefined;
}

export function contents(uri: string, data: string | Uint8Array, mimeType?: string, more?: { _meta?: Json }): Contents;

/** A complete result of a tool. */
export interface ToolResult {
  readonly [kind]: "result";
}

/** A complete result: content in addition to structured data, an error with content, `_meta`. */
export function result(members: {
  content?: ReadonlyArray<string | Content>;
  structured?: object;
  isError?: boolean;
  meta?: Json;
}): ToolResult;

export interface Message {
  readonly role: "user" | "assistant";
  readonly content: string | Content;
}

export function user(content: string | Content): Message;
export function assistant(content: string | Content): Message;

// ---- Calls

export type Level = "debug" | "info" | "notice" | "warning" | "error" | "critical" | "alert" | "emergency";

/** A kind of question that a client can answer. */
export type Capability = "form" | "url" | "sampling" | "samplingTools" | "roots";

/** A kind of report that a client may want to get while a call runs. */
export type Report = "progress" | "log";

/** A question that only the client can answer, with an answer of type `T`. */
export interface Question<T> {
  readonly [kind]: T;
}

/** The user's answer to a form. */
export type FormAnswer<T> = { action: "accept"; content: T } | { action: "decline" | "cancel"; content?: undefined };

export interface Root {
  uri: string;
  name?: string | undefined;
}

/** A directory that is open to this call. */
export interface Directory {
  path: string;
  writable: boolean;
}

/** The parameters of `sampling/createMessage`. */
export interface SamplingParams {
  messages: Array<{ role: "user" | "assistant"; content: object }>;
  maxTokens: number;
  [member: string]: unknown;
}

/** A form for the user: flat fields, as MCP allows. The answer has the schema's type. */
export function form<const S extends Schema>(message: string, schema: S): Question<FormAnswer<Out<S>>>;
/** A URL for the user to open in a browser, over https. */
export function url(message: string, url: string): Question<{ action: "accept" | "decline" | "cancel" }>;
/** A question to the client's model. Do not trust the reply. */
export function sampling(params: SamplingParams): Question<any>;
/** A question for the client's roots, as the client spells them. */
export function roots(): Question<Root[]>;

/** A call of the plugin: information about the caller, and methods to ask questions and report progress. */
export interface Call {
  /** The revision of MCP that the client speaks. */
  readonly revision: string;
  /** The client's program, as it names itself. */
  readonly client: { name: string; version: string; title?: string | undefined } | undefined;
  /**
   * An opaque id of the caller, under which the plugin can store what belongs to that user. It is made for this plugin alone. Without it,
   * wharf does not tell callers apart (stdio, or HTTP without credentials), and all such calls count as one caller's.
   */
  readonly caller: string | undefined;
  /** The request's `_meta`. */
  readonly meta: { [member: string]: Json };
  /** The client's capabilities as it sent them. */
  readonly capabilities: { [member: string]: Json };
  /** The plugin's table from the operator's config file. */
  readonly config: any;
  readonly directories: Directory[];

  can(what: Capability | Report): boolean;

  /**
   * Asks the user or the client. If the question has no answer yet, the call ends here: wharf asks, the function runs again from its
   * start, and then this returns the answer. So before the last question, do nothing that must not happen twice. No `catch` or `finally`
   * around it runs when the call ends here.
   */
  ask<T>(key: string, question: Question<T>): Promise<T>;
  /** Asks several questions in one round. */
  askAll<const Q extends Record<string, Question<any>>>(
    questions: Q,
  ): Promise<{ [K in keyof Q]: Q[K] extends Question<infer T> ? T : never }>;
  /** `ask` with `sampling`. */
  sample(key: string, params: SamplingParams): Promise<any>;
  /** `ask` with `roots`. The directories that the plugin may use are in `directories`. */
  roots(): Promise<Root[]>;

  /** Stores a value for the next round, when the function is called again: at most 64 KiB of JSON. The client cannot read it. */
  keep(value: unknown): void;
  /** Returns the value that an earlier round stored. */
  kept<T = any>(): T | undefined;

  /** Reports progress to the client, in any unit; `done` must grow from report to report. */
  progress(done: number, total?: number, message?: string): void;
  /** Logs to the operator, and to the client if its log level allows. If `data` is given, the client sees it instead of the message. */
  log(level: Level, message: string, data?: unknown): void;
}

// ---- Parts

declare const part: unique symbol;

export interface Part {
  readonly [part]: true;
}

export interface Hints {
  readOnly?: boolean;
  destructive?: boolean;
  idempotent?: boolean;
  openWorld?: boolean;
}

type Plain = string | Content | ReadonlyArray<string | Content> | ToolResult | void;

export interface ToolOptions<I extends Schema | undefined, O extends Schema | undefined> {
  /** The description by which a model chooses the tool. */
  description: string;
  title?: string;
  /** The schema of the arguments. Without it, the tool takes no arguments. */
  input?: I;
  /** The schema of the structured result, which `run` then returns. */
  output?: O;
  /** Hints that clients may show; they grant nothing. */
  hints?: Hints;
  /** Capabilities that the client must have, or wharf refuses the call. */
  needs?: readonly Capability[];
  /** Whether the call may, or must, run in the background. */
  task?: "forbidden" | "optional" | "required";
  /** Whether questions are asked before a task begins rather than while it runs. */
  askBeforeTask?: boolean;
  icons?: Json;
  meta?: Json;
  run: (args: I extends Schema ? Out<I> : {}, call: Call) => Awaitable<O extends Schema ? In<O> | ToolResult : Plain>;
}

/** A tool: a function that a model can call. */
export function tool<const I extends Schema | undefined = undefined, const O extends Schema | undefined = undefined>(
  name: string,
  options: ToolOptions<I, O>,
): Part;

/** The variables of a URI template. */
export type Variables<U extends string> = U extends `${string}{${infer V}}${infer Rest}`
  ? { [K in V extends `+${infer N}` ? N : V]: string } & Variables<Rest>
  : unknown;

/** Suggestions: a list, which is filtered by the typed prefix, or a function of the typed text and the arguments already chosen. */
export type Complete =
  readonly string[] | ((value: string, others: Record<string, string>) => Awaitable<readonly string[]>);

export interface ResourceOptions<U extends string> {
  name?: string;
  title?: string;
  description?: string;
  mimeType?: string;
  /** The size in bytes. */
  size?: number;
  annotations?: Json;
  icons?: Json;
  meta?: Json;
  /** Suggestions for the variables of a template. */
  complete?: Partial<Record<keyof Variables<U>, Complete>>;
  /** Reads the resource; returns `undefined` if it does not exist. */
  read: (
    about: Variables<U> & { uri: string },
    call: Call,
  ) => Awaitable<string | Uint8Array | Contents | readonly Contents[] | undefined>;
}

/** A resource: data that a client can read by URI. A URI with `{variable}`, or `{+variable}`, which may contain slashes, is a template. */
export function resource<const U extends string>(uri: U, options: ResourceOptions<U>): Part;

export type PromptArgument = string | { description?: string; required?: boolean; complete?: Complete };

type PromptArgs<A> = { [K in keyof A]: A[K] extends { required: false } ? string | undefined : string };

/** A prompt: messages that a user can start a conversation with. */
export function prompt<const A extends Record<string, PromptArgument> = {}>(
  name: string,
  options: {
    description?: string;
    title?: string;
    /** The arguments by name, each as its description or as an object with further options. */
    args?: A;
    icons?: Json;
    meta?: Json;
    get: (
      args: PromptArgs<A>,
      call: Call,
    ) => Awaitable<string | readonly Message[] | { description?: string; messages: readonly Message[] }>;
  },
): Part;

/** The grants that the plugin requests, and why. This grants nothing: `wharf add` asks the operator. */
export interface Wants {
  http?: Array<string | { url: string; why?: string; methods?: string[]; secret?: string; [member: string]: unknown }>;
  roots?: "read" | "read-write" | { [member: string]: unknown };
  env?: unknown[];
  ask?: unknown[];
  secrets?: unknown;
  settings?: unknown;
}

export interface PluginOptions {
  /** Up to 2 KiB of advice for the model about all tools together. */
  instructions?: string;
  wants?: Wants;
}

type Parts = ReadonlyArray<Part | Parts>;

/** The plugin, the default export of its file. It takes parts, or a function that makes them from the operator's config. */
export function plugin(parts: Parts | ((config: any) => Parts), options?: PluginOptions): object;

// ---- Failures

/**
 * A failure with exactly this message. Without `code`, a tool call is answered with `isError: true`. With it, the client gets a protocol
 * error with that code, which must be one of the plugin's own: -32768 to -32000, 403 and 429 are reserved.
 */
export class Failure extends Error {
  constructor(message: string, options?: { code?: number; data?: Json; cause?: unknown });
  readonly code: number | undefined;
  readonly data: Json | undefined;
}

/** A failure for parameters that satisfy the schema but are invalid for another reason. */
export function invalidParams(message: string, data?: Json): Failure;
/** A failure for a URI without a resource. */
export function resourceNotFound(uri: string): Failure;

// ---- Functions of wharf, available during a call

export function config(): any;
export function directories(): Directory[];
export function log(level: Level, message: string, data?: unknown): void;
export function progress(done: number, total?: number, message?: string): void;
/** Announces that one of this plugin's lists changed. */
export function listChanged(which: "tools" | "resources" | "prompts"): void;
/** Announces that a resource of this plugin has new contents. */
export function resourceUpdated(uri: string): void;
