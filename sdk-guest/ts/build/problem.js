/** A mistake in the author's plugin, described in one sentence. Any other thrown error is a defect of the SDK. */
export class Problem extends Error {}
