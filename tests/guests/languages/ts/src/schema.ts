import { toStandardJsonSchema } from "@valibot/to-json-schema";
import * as v from "valibot";

export const text = (description: string) => v.pipe(v.string(), v.description(description));

export const object = <const E extends v.ObjectEntries>(entries: E) => toStandardJsonSchema(v.object(entries));

/** The world goes on while a call waits. */
export const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
