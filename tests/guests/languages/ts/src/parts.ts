import { abilities } from "./abilities.js";
import { asking } from "./asking.js";
import { plain } from "./plain.js";
import { prompts } from "./prompts.js";
import { resources } from "./resources.js";
import { tasks } from "./tasks.js";

// The suite calls the first tool without arguments, and reads the first resource without checking its kind.
export const parts = [plain, asking, tasks, abilities, resources, prompts];
