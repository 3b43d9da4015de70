// Write wharf plugins in TypeScript or JavaScript.

export { form, roots, sampling, url } from "./call.js";
export { assistant, audio, contents, embedded, image, link, raw, result, text, user } from "./content.js";
export { plugin, prompt, resource, tool } from "./define.js";
export { Failure, invalidParams, resourceNotFound } from "./errors.js";
export { config, directories, listChanged, log, progress, resourceUpdated } from "./host.js";
