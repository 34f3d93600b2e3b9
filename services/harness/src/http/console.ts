// The console page: static files, read once at start, under a policy that allows nothing but them.
import { readFileSync } from "node:fs";
import type { FastifyInstance } from "fastify";

const files = {
  "/": ["index.html", "text/html; charset=utf-8"],
  "/console/style.css": ["style.css", "text/css; charset=utf-8"],
  "/console/app.js": ["app.js", "text/javascript; charset=utf-8"],
  "/console/api.js": ["api.js", "text/javascript; charset=utf-8"],
  "/console/view.js": ["view.js", "text/javascript; charset=utf-8"],
} as const;

const securityHeaders = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cache-control": "no-cache",
};

export function consoleRoutes(app: FastifyInstance): void {
  for (const [url, [name, type]] of Object.entries(files)) {
    const content = readFileSync(new URL(`../../console/${name}`, import.meta.url));
    app.get(url, { config: { role: "public" } }, (_request, reply) =>
      reply.headers(securityHeaders).header("content-type", type).send(content),
    );
  }
}
