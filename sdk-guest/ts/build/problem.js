/** What is wrong with the author's plugin, in one sentence. Anything else that is thrown is a defect of the SDK. */
export class Problem extends Error {}
