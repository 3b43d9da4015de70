// Modules of Node.js have no types here, so that the build says that a plugin does not have them, and not the compiler that types are missing.

declare module "node:*";
