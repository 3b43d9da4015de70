import { toStandardJsonSchema } from "@valibot/to-json-schema";
import * as v from "valibot";

export const text = (description: string) => v.pipe(v.string(), v.description(description));

export const object = <const E extends v.ObjectEntries>(entries: E) => toStandardJsonSchema(v.object(entries));

/** Blocking is fine here: nothing else runs in the sandbox of this call. */
export const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
