// The types of wharf-sdk.

/** JSON that was parsed, or will be written. */
export type Json = null | boolean | number | string | Json[] | { [member: string]: Json };

/** A schema of any library that follows the Standard Schema and the Standard JSON Schema, such as zod, valibot or arktype. */
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

/** A JSON Schema of an object, written by hand. wharf checks arguments by it. */
export interface JsonSchema {
  readonly type: "object";
  readonly properties?: { readonly [name: string]: unknown };
  readonly required?: readonly string[];
  readonly "~standard"?: undefined;
  readonly [keyword: string]: unknown;
}

export type Schema = StandardSchema | JsonSchema;

/** What a schema gives to a function. */
export type Out<S> = S extends { readonly "~standard": { readonly types?: { readonly output: infer T } | undefined } }
  ? T
  : any;

/** What a schema takes from a function. */
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
/** A resource's contents within a result. */
export function embedded(uri: string, data: string | Uint8Array, mimeType?: string): Content;
/** A complete content block of MCP, for annotations and kinds that have no function here. */
export function raw(block: { type: string; [member: string]: Json }): Content;

/** One piece of a resource. */
export interface Contents {
  readonly uri: string;
  readonly mimeType?: string | undefined;
  readonly body: { readonly tag: "text"; readonly val: string } | { readonly tag: "bytes"; readonly val: Uint8Array };
  readonly more?: string | undefined;
}

export function contents(uri: string, data: string | Uint8Array, mimeType?: string, more?: { _meta?: Json }): Contents;

/** A whole result of a tool. */
export interface ToolResult {
  readonly [kind]: "result";
}

/** Content beside structured data, an error that the tool words itself, `_meta`. */
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

/** What a client may be able to do. */
export type Ability = "form" | "page" | "sampling" | "samplingTools" | "roots" | "progress" | "log";

/** Something that only the client can answer, with `T`. */
export interface Question<T> {
  readonly [kind]: T;
}

/** What the person did with a form. */
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

/** A form for the person: flat fields, as MCP allows. What they enter comes back as the schema's type. */
export function form<const S extends Schema>(message: string, schema: S): Question<FormAnswer<Out<S>>>;
/** A page for the person to open, over https. */
export function page(message: string, url: string): Question<{ action: "accept" | "decline" | "cancel" }>;
/** A question to the client's model. Do not trust the reply. */
export function sampling(params: SamplingParams): Question<any>;
/** What the client has opened, as it spells it. */
export function roots(): Question<Root[]>;

/** One call: what it knows of its caller, and how it asks and reports. */
export interface Call {
  /** The revision of MCP that the client speaks. */
  readonly revision: string;
  readonly client: { name: string; version?: string } | undefined;
  /** The request's `_meta`. */
  readonly meta: { [member: string]: Json };
  /** The client's capabilities as it sent them. */
  readonly capabilities: { [member: string]: Json };
  /** The plugin's table from the operator's file. */
  readonly config: any;
  readonly directories: Directory[];

  can(ability: Ability): boolean;

  /**
   * Asks the person or the client. Without an answer the call ends here, wharf asks, and the function runs again from its start, when
   * this returns the answer. So do nothing before the last question that must not happen twice. No `catch` or
   * `finally` around it runs meanwhile.
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

  /** Keeps a value for when this call is made again with answers: at most 64 KiB of JSON, which nobody else can read. */
  keep(value: unknown): void;
  /** What an earlier round kept. */
  kept<T = any>(): T | undefined;

  /** Tells how far the call has come, in any unit; `done` must grow. */
  progress(done: number, total?: number, message?: string): void;
  /** To the operator, and to the client if it wants to hear it; `data` is what the client sees in place of the message. */
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
  /** A model chooses by it. */
  description: string;
  title?: string;
  /** The schema of the arguments; none are taken without it. */
  input?: I;
  /** The schema of the structured result, which `run` then returns. */
  output?: O;
  /** Clients may show them; they grant nothing. */
  hints?: Hints;
  /** wharf refuses the call if the client lacks one of these. */
  needs?: readonly Ability[];
  /** Whether the call may, or must, run in the background. */
  task?: "forbidden" | "optional" | "required";
  /** Whether questions are put before a task begins rather than inside it. */
  askBeforeTask?: boolean;
  icons?: Json;
  meta?: Json;
  run: (args: I extends Schema ? Out<I> : {}, call: Call) => Awaitable<O extends Schema ? In<O> | ToolResult : Plain>;
}

/** Something a model can do. */
export function tool<const I extends Schema | undefined = undefined, const O extends Schema | undefined = undefined>(
  name: string,
  options: ToolOptions<I, O>,
): Part;

/** The variables of a URI template. */
export type Variables<U extends string> = U extends `${string}{${infer V}}${infer Rest}`
  ? { [K in V extends `+${infer N}` ? N : V]: string } & Variables<Rest>
  : unknown;

/** Suggestions: a list, of which wharf gets what begins as typed, or a function of what is typed and the arguments already chosen. */
export type Complete =
  readonly string[] | ((value: string, others: Record<string, string>) => Awaitable<readonly string[]>);

export interface ResourceOptions<U extends string> {
  name?: string;
  title?: string;
  description?: string;
  mimeType?: string;
  /** In bytes. */
  size?: number;
  annotations?: Json;
  icons?: Json;
  meta?: Json;
  /** Suggestions for the variables of a template. */
  complete?: Partial<Record<keyof Variables<U>, Complete>>;
  /** `undefined` says that there is no such resource. */
  read: (
    about: Variables<U> & { uri: string },
    call: Call,
  ) => Awaitable<string | Uint8Array | Contents | readonly Contents[] | undefined>;
}

/** Something a client can read by URI; with `{variable}` or `{+variable}` in it, which may hold slashes, a template. */
export function resource<const U extends string>(uri: U, options: ResourceOptions<U>): Part;

export type PromptArgument = string | { description?: string; required?: boolean; complete?: Complete };

type PromptArgs<A> = { [K in keyof A]: A[K] extends { required: false } ? string | undefined : string };

/** A message that a person can start from. */
export function prompt<const A extends Record<string, PromptArgument> = {}>(
  name: string,
  options: {
    description?: string;
    title?: string;
    /** Descriptions by name, or objects that say more. */
    args?: A;
    icons?: Json;
    meta?: Json;
    get: (
      args: PromptArgs<A>,
      call: Call,
    ) => Awaitable<string | readonly Message[] | { description?: string; messages: readonly Message[] }>;
  },
): Part;

/** What the plugin wants to be granted, and why: `wharf add` asks the operator. It grants nothing. */
export interface Wants {
  http?: Array<{ url: string; why?: string; methods?: string[]; secret?: string; [member: string]: unknown }>;
  roots?: "read" | "read-write" | { [member: string]: unknown };
  env?: unknown[];
  ask?: unknown[];
  secrets?: unknown;
  settings?: unknown;
}

export interface PluginOptions {
  /** Tells the model, in up to 2 KiB, what holds for all tools together. */
  instructions?: string;
  wants?: Wants;
}

type Parts = ReadonlyArray<Part | Parts>;

/** The plugin, which its file exports by default: parts, or a function that makes them from the operator's config. */
export function plugin(parts: Parts | ((config: any) => Parts), options?: PluginOptions): object;

// ---- Failures

/** An end of a call in exactly these words. With `code` it is a JSON-RPC error; without, a tool answers `isError: true`. */
export class Failure extends Error {
  constructor(message: string, options?: { code?: number; data?: Json; cause?: unknown });
  readonly code: number | undefined;
  readonly data: Json | undefined;
}

/** The parameters are wrong in a way that the schema cannot say: -32602. */
export function invalidParams(message: string, data?: Json): Failure;
/** There is no resource under this URI: -32002. */
export function resourceNotFound(uri: string): Failure;

// ---- wharf, within a call

export function config(): any;
export function directories(): Directory[];
export function log(level: Level, message: string, data?: unknown): void;
export function progress(done: number, total?: number, message?: string): void;
/** This plugin's own list differs from what it said last. */
export function listChanged(which: "tools" | "resources" | "prompts"): void;
/** A resource of this plugin has new contents. */
export function resourceUpdated(uri: string): void;
