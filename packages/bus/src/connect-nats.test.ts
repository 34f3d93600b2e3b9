import { describe, expect, it } from "vitest";
import { parseNatsUrl } from "./connect-nats.ts";

describe("parseNatsUrl", () => {
  it("reads several servers and the login of whichever has one", () => {
    expect(parseNatsUrl("nats://a:1, nats://u:p%40ss@b, c:3")).toEqual({
      servers: ["a:1", "b:4222", "c:3"],
      user: "u",
      password: "p@ss",
    });
  });

  it("leaves the login out when there is none", () => {
    expect(parseNatsUrl("nats://127.0.0.1:4222")).toEqual({ servers: ["127.0.0.1:4222"] });
  });

  it.each(["", " , ", "nats://", "nats://u:secret@ host"])(
    "refuses %j by naming the variable, not the value",
    (url) => {
      let thrown: unknown;
      try {
        parseNatsUrl(url);
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toMatchObject({ code: "CONFIG_INVALID", field: "NATS_URL" });
      expect(String(thrown)).not.toContain("secret");
    },
  );
});
