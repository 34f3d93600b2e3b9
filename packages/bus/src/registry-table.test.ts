// Routing as a pure rule: precedence, grants, liveness.
import { defaultGrants, FunctionManifest, WorkerManifest } from "@flotilla/contracts";
import { describe, expect, it } from "vitest";
import { isGranted, RegistryTable } from "./registry-table.ts";

function aManifest(worker: string, fields: { priority?: number; first?: number; ids?: string[] } = {}): WorkerManifest {
  const ids = fields.ids ?? ["shop::sell"];
  return WorkerManifest.parse({
    worker,
    priority: fields.priority ?? 0,
    first_registered_at: fields.first ?? 1,
    functions: ids.map((id) => FunctionManifest.parse({ id })),
  });
}

function aTable(...workers: WorkerManifest[]): RegistryTable {
  const table = new RegistryTable(defaultGrants);
  for (const manifest of workers) {
    table.putManifest(manifest);
    table.putInstance({ worker: manifest.worker, instance: "i0", started_at: 0 }, 0);
  }
  return table;
}

describe("RegistryTable.resolve", () => {
  it("prefers the higher priority over the later registration", () => {
    const table = aTable(aManifest("swap", { priority: 100, first: 1 }), aManifest("newer", { first: 9 }));
    expect(table.resolve("shop::sell")?.worker).toBe("swap");
  });

  it("prefers the latest first registration among equals, whatever the order of arrival", () => {
    const [older, newer] = [aManifest("older", { first: 5 }), aManifest("newer", { first: 6 })];
    expect(aTable(older, newer).resolve("shop::sell")?.worker).toBe("newer");
    expect(aTable(newer, older).resolve("shop::sell")?.worker).toBe("newer");
  });

  it("takes the name when everything else is equal", () => {
    expect(aTable(aManifest("b"), aManifest("a")).resolve("shop::sell")?.worker).toBe("a");
  });

  it("falls back to the one before when the winner leaves, and returns when it is back", () => {
    const table = aTable(aManifest("base", { first: 1 }), aManifest("swap", { first: 2 }));
    table.dropInstance("swap", "i0");
    expect(table.resolve("shop::sell")).toMatchObject({ worker: "base", live: true });
    table.putInstance({ worker: "swap", instance: "i1", started_at: 0 }, 0);
    expect(table.resolve("shop::sell")).toMatchObject({ worker: "swap", live: true });
  });

  it("stays with a worker while one of its replicas is left", () => {
    const table = aTable(aManifest("base"), aManifest("swap", { priority: 1 }));
    table.putInstance({ worker: "swap", instance: "i1", started_at: 0 }, 0);
    table.dropInstance("swap", "i0");
    expect(table.resolve("shop::sell")?.worker).toBe("swap");
  });

  it("answers the best offer as not live when nobody is live, and null when nobody offers", () => {
    const table = aTable(aManifest("base"));
    table.dropInstances("base");
    expect(table.resolve("shop::sell")).toMatchObject({ worker: "base", live: false });
    expect(table.resolve("shop::buy")).toBeNull();
    table.dropManifest("base");
    expect(table.resolve("shop::sell")).toBeNull();
  });

  it("follows a manifest that changes what it offers", () => {
    const table = aTable(aManifest("base"));
    expect(table.resolve("shop::buy")).toBeNull();
    table.putManifest(aManifest("base", { ids: ["shop::buy"] }));
    expect(table.resolve("shop::buy")?.worker).toBe("base");
    expect(table.resolve("shop::sell")).toBeNull();
    expect(table.functions().map((route) => route.fn.id)).toEqual(["shop::buy"]);
  });
});

describe("grants", () => {
  it("give no call to a worker that offers a reserved namespace without a grant, and name the function", () => {
    const table = new RegistryTable(defaultGrants);
    table.putManifest(aManifest("policy", { ids: ["policy::check_permissions"] }));
    const refused = table.putManifest(
      aManifest("evil", { priority: 999, ids: ["policy::check_permissions", "evil::ok"] }),
    );
    table.putInstance({ worker: "evil", instance: "i0", started_at: 0 }, 0);
    expect(refused).toEqual(["policy::check_permissions"]);
    expect(table.resolve("policy::check_permissions")).toMatchObject({ worker: "policy", live: false });
    expect(table.resolve("evil::ok")?.worker).toBe("evil");
    expect(table.offerOf("evil", "policy::check_permissions")).toBeNull();
  });

  it.each([
    ["policy::check_permissions", "policy", true],
    ["policy::check_permissions", "policy-opa", true],
    ["policy::check_permissions", "policyx", false],
    ["auth::get_token", "auth-credentials", true],
    ["auth::get_token", "auth-credentials-2", false],
    ["provider::mine::stream", "provider-mine", true],
    ["provider::mine::stream", "mine", false],
    ["anything::else", "whoever", true],
    ["constructor::x", "whoever", true],
  ])("%s by %s: %s", (id, worker, expected) => {
    expect(isGranted(defaultGrants, id, worker)).toBe(expected);
  });
});

describe("expiry", () => {
  it("drops an instance only after its TTL of silence", () => {
    const table = aTable(aManifest("base"));
    expect(table.hasExpired(15_000)).toBe(false);
    expect(table.expire(15_000)).toEqual([]);
    expect(table.expire(15_001)).toEqual([{ worker: "base", instance: "i0" }]);
    expect(table.isInstanceLive("base", "i0")).toBe(false);
  });

  it("gives everybody a full TTL after a stall", () => {
    const table = aTable(aManifest("base"));
    table.touchAll(20_000);
    expect(table.hasExpired(35_000)).toBe(false);
    expect(table.hasExpired(35_001)).toBe(true);
  });
});
