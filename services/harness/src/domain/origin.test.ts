import { describe, expect, it } from "vitest";
import { checkOrigin, isLoopback, type RequestOrigin } from "./origin.ts";

const aRequest = (rest: Partial<RequestOrigin>): RequestOrigin => ({
  method: "POST",
  host: "127.0.0.1:7440",
  origin: undefined,
  fetchSite: undefined,
  ...rest,
});
const open = { isOpen: true, allowedHosts: ["box.lan"] };
const guarded = { isOpen: false, allowedHosts: [] };

describe("requests that a browser may have been tricked into", () => {
  it.each([
    aRequest({}),
    aRequest({ host: "localhost:7440", origin: "http://localhost:7440" }),
    aRequest({ host: "[::1]:7440", origin: "http://[::1]:7440", fetchSite: "same-origin" }),
    aRequest({ host: "box.lan" }),
    aRequest({ method: "GET", origin: "http://elsewhere.test", fetchSite: "cross-site" }),
  ])("passes %o", (request) => {
    expect(() => checkOrigin(request, open)).not.toThrow();
  });

  it.each([
    aRequest({ origin: "http://elsewhere.test" }),
    aRequest({ origin: "http://127.0.0.1:7441" }),
    aRequest({ origin: "null" }),
    aRequest({ fetchSite: "cross-site" }),
    aRequest({ host: "rebound.test:7440" }),
    aRequest({ method: "GET", host: "rebound.test:7440" }),
    aRequest({ host: undefined }),
  ])("refuses %o", (request) => {
    expect(() => checkOrigin(request, open)).toThrow(expect.objectContaining({ code: "FORBIDDEN" }));
  });

  it("leaves host names to the tokens where there are some, and still refuses foreign origins", () => {
    expect(() => checkOrigin(aRequest({ host: "api.corp.test" }), guarded)).not.toThrow();
    expect(() => checkOrigin(aRequest({ host: "api.corp.test", origin: "https://evil.test" }), guarded)).toThrow();
  });

  it("knows loopback addresses", () => {
    expect(["127.0.0.1", "127.8.9.1", "localhost", "::1", "[::1]"].every(isLoopback)).toBe(true);
    expect(["0.0.0.0", "10.0.0.1", "::", "127.0.0.1.evil.test", "localhost.test"].some(isLoopback)).toBe(false);
  });
});
