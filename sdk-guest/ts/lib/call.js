// The context of a call: information about the caller, and questions to it.

import { Failure } from "./errors.js";
import * as host from "./host.js";
import { formSchema } from "./schema.js";

/** A form for the user. The answer has the schema's type. */
export function form(message, schema) {
  const { json, validate } = formSchema(schema, `the form "${message}"`);
  const question = { tag: "form", val: { message, schema: JSON.stringify(json) } };
  return {
    question,
    read(answer) {
      const action = told(answer);
      if (action !== "accept") return { action };
      const content = JSON.parse(answer.val);
      const value = validate ? validate(content) : content;
      return typeof value?.then === "function"
        ? value.then((content) => ({ action, content }))
        : { action, content: value };
    },
  };
}

/** A URL for the user to open in a browser, over https. */
export const url = (message, url) => ({
  question: { tag: "url", val: { message, url } },
  read: (answer) => ({ action: told(answer) }),
});

/** A question to the client's model: the parameters of `sampling/createMessage`. Do not trust the reply. */
export const sampling = (params) => ({
  question: { tag: "sampling", val: JSON.stringify(params) },
  read(answer) {
    if (answer.tag === "sampled") return JSON.parse(answer.val);
    throw new Failure("the client did not want to sample");
  },
});

/** A question for the client's roots, as the client spells them. */
export const roots = () => ({
  question: { tag: "roots" },
  read(answer) {
    if (answer.tag === "roots") return answer.val.map(({ uri, name }) => ({ uri, name: name ?? undefined }));
    throw new Failure("the client did not answer which roots it has opened");
  },
});

const ACTIONS = { accepted: "accept", declined: "decline", cancelled: "cancel" };

function told(answer) {
  const action = ACTIONS[answer.tag];
  if (!action) throw new Failure("the answer is of another kind than the question");
  return action;
}

export class Call {
  #answers;
  #given;
  #state;
  #context;
  #rest;
  #asked = () => {};

  constructor(context) {
    this.#answers = new Map(context.answers);
    this.#given = context.state ?? undefined;
    this.#state = this.#given;
    this.#context = context;
    /** The questions that have no answer yet. */
    this.open = new Map();
  }

  get #more() {
    return (this.#rest ??= JSON.parse(this.#context.more));
  }
  get revision() {
    return this.#context.revision;
  }
  get client() {
    const { name, version, title } = this.#context.client ?? {};
    return name === undefined ? undefined : { name, version, title: title ?? undefined };
  }
  get caller() {
    return this.#context.caller ?? undefined;
  }
  get meta() {
    return this.#more.meta ?? {};
  }
  get capabilities() {
    return this.#more.capabilities ?? {};
  }

  /** Whether the client can answer such a question, or wants to get such a report, during this call. */
  can(what) {
    return this.#context.capabilities[what] === true || this.#context.reports[what] === true;
  }

  /**
   * Asks a question. If it has no answer yet, the call ends here: this promise never settles, so no `catch` of the author runs. wharf asks
   * the client, and the function runs again from its start; then the key has an answer. Questions that are asked at the same time are
   * sent in one round.
   */
  async ask(key, asked) {
    const answer = this.#answers.get(key);
    if (answer) return asked.read(answer);
    this.open.set(key, asked.question);
    this.#asked();
    return new Promise(() => {});
  }

  /** Whether the client has answered the question with this key. */
  hasAnswer(key) {
    return this.#answers.has(key);
  }

  /** Asks several questions at once. Takes an object of questions and returns an object of answers with the same keys. */
  async askAll(questions) {
    const keys = Object.keys(questions);
    const answers = await Promise.all(keys.map((key) => this.ask(key, questions[key])));
    return Object.fromEntries(keys.map((key, index) => [key, answers[index]]));
  }

  sample(key, params) {
    return this.ask(key, sampling(params));
  }

  roots() {
    return this.ask("roots", roots());
  }

  /** Stores a value for the next round, when the function is called again with answers: at most 64 KiB of JSON. */
  keep(value) {
    this.#state = new TextEncoder().encode(JSON.stringify(value));
  }

  /** Returns the value that an earlier round stored. */
  kept() {
    return this.#given && JSON.parse(new TextDecoder().decode(new Uint8Array(this.#given)));
  }

  progress(done, total, message) {
    host.progress(done, total, message);
  }

  log(level, message, data) {
    host.log(level, message, data);
  }

  get config() {
    return host.config();
  }

  get directories() {
    return host.directories();
  }

  /** Returns the open questions as the contract's `round`. */
  round() {
    return { questions: [...this.open], state: this.#state };
  }

  /** Calls the callback once, when the first question without an answer is asked. */
  whenAsked(callback) {
    if (this.open.size) return callback();
    this.#asked = () => {
      this.#asked = () => {};
      callback();
    };
  }
}
