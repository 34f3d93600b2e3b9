import { describe, expect, it } from "vitest";
import { anyone, authenticate, parseTokens, requireRole, workspaceFor } from "./tokens.ts";

const rows = parseTokens("# people\nalpha-1 one client\n\n  beta-2\ttwo approver\ngamma-3 * operator\n");

describe("static tokens", () => {
  it("reads token, workspace and role", () => {
    expect(authenticate("Bearer alpha-1", rows)).toEqual({ role: "client", workspace: "one" });
    expect(authenticate("bearer  beta-2", rows)).toEqual({ role: "approver", workspace: "two" });
    expect(authenticate("Bearer gamma-3", rows)).toEqual({ role: "operator", workspace: null });
  });

  it.each([undefined, "", "Bearer", "Bearer alpha", "Bearer alpha-11", "Basic alpha-1", "alpha-1"])(
    "refuses %j as UNAUTHENTICATED",
    (header) => {
      expect(() => authenticate(header, rows)).toThrow(expect.objectContaining({ code: "UNAUTHENTICATED" }));
    },
  );

  it.each(["only", "a b", "a b owner", "a b client more", "a we!rd client"])(
    "refuses the line %j without repeating it",
    (line) => {
      const parse = () => parseTokens(`ok one client\n${line}`);
      expect(parse).toThrow(/line 2/);
      expect(parse).not.toThrow(new RegExp(line));
    },
  );

  it("gives each role what the ones before it have", () => {
    const approver = { role: "approver", workspace: null } as const;
    expect(() => requireRole(approver, "client")).not.toThrow();
    expect(() => requireRole(approver, "approver")).not.toThrow();
    expect(() => requireRole(approver, "operator")).toThrow(expect.objectContaining({ code: "FORBIDDEN" }));
  });

  it("keeps writes in the token's workspace", () => {
    const client = { role: "client", workspace: "one" } as const;
    expect(workspaceFor(client, undefined)).toBe("one");
    expect(workspaceFor(client, "one")).toBe("one");
    expect(() => workspaceFor(client, "two")).toThrow(
      expect.objectContaining({ code: "FORBIDDEN", field: "workspace" }),
    );
    expect(workspaceFor(anyone, "two")).toBe("two");
    expect(workspaceFor(anyone, undefined)).toBeUndefined();
  });
});
