import { audio, image } from "wharf-sdk";

const bytes = (base64: string) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));

/** One red dot. */
export const PNG = bytes(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC",
);

/** Four samples of silence at 8 kHz. */
const WAV = bytes("UklGRigAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQQAAACAgICA");

export const picture = () => image(PNG, "image/png");

export const sound = () => audio(WAV, "audio/wav");
