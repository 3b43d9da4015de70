// The resources that the suite reads. It reads the first one without checking its kind, so that is a plain text.
import { resource } from "wharf-sdk";

import { PNG } from "./media.js";

export const resources = [
  resource("test://static-text", {
    name: "static-text",
    description: "A text that stays as it is.",
    mimeType: "text/plain",
    read: () => "This is the content of the static text resource.",
  }),

  resource("test://static-binary", {
    name: "static-binary",
    description: "A picture that stays as it is.",
    mimeType: "image/png",
    read: () => PNG,
  }),

  resource("test://watched-resource", {
    name: "watched-resource",
    description: "A text to subscribe to. It never changes: no scenario waits for that.",
    mimeType: "text/plain",
    read: () => "Watched resource content",
  }),

  resource("test://template/{id}/data", {
    name: "template-data",
    description: "Data by its id.",
    mimeType: "application/json",
    read: ({ id }) => JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
  }),
];
