import { describe, expect, it } from "vitest";
import { harnessConfig } from "./config.ts";

describe("the front door's configuration", () => {
  it("listens on loopback, each replica on its own port", () => {
    expect(harnessConfig({})).toMatchObject({ host: "127.0.0.1", port: 7440, tokensFile: undefined });
    expect(harnessConfig({ FLOTILLA_PORT: "9000", FLOTILLA_INSTANCE: "2" }).port).toBe(9002);
    expect(harnessConfig({ FLOTILLA_PORT: "0", FLOTILLA_INSTANCE: "2" }).port).toBe(0);
  });

  it.each(["0.0.0.0", "::", "10.1.2.3", "box.lan"])("refuses to listen on %s without tokens", (host) => {
    expect(() => harnessConfig({ FLOTILLA_HOST: host })).toThrow(
      expect.objectContaining({ code: "CONFIG_INVALID", message: expect.stringContaining("FLOTILLA_TOKENS_FILE") }),
    );
    expect(harnessConfig({ FLOTILLA_HOST: host, FLOTILLA_TOKENS_FILE: "/etc/tokens" }).host).toBe(host);
  });
});
