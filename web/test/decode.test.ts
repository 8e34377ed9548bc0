import assert from "node:assert/strict";
import test from "node:test";
import { deflateSync } from "node:zlib";
import { decompress, fromBase64, undelta, unpackBits } from "../src/player/decode.ts";

function noise(count: number, levels: number): Uint8Array<ArrayBuffer> {
  let state = 12345;
  return Uint8Array.from({ length: count }, () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 16) % levels;
  });
}

const samples: Record<string, Uint8Array<ArrayBuffer>> = {
  empty: new Uint8Array(0),
  flat: new Uint8Array(70_000),
  "narrow noise": noise(200_000, 5),
  "full noise": noise(100_000, 256),
  ramp: Uint8Array.from({ length: 5000 }, (_, index) => index % 251),
};

for (const [name, bytes] of Object.entries(samples)) {
  test(`deflated data come back: ${name}`, async () => {
    for (const level of [0, 1, 6, 9]) {
      assert.deepEqual(await decompress(new Uint8Array(deflateSync(bytes, { level })), bytes.length), bytes);
    }
  });
}

test("damaged or short data is refused", async () => {
  const packed = new Uint8Array(deflateSync(samples["narrow noise"] as Uint8Array));
  await assert.rejects(decompress(packed.slice(0, 500), 200_000));
  await assert.rejects(decompress(packed, 100), /expected/);
  await assert.rejects(decompress(Uint8Array.of(0, 0, 0), 1));
});

test("a browser without the stream says so", async () => {
  const bytes = samples["narrow noise"] as Uint8Array<ArrayBuffer>;
  const native = globalThis.DecompressionStream;
  try {
    Reflect.deleteProperty(globalThis, "DecompressionStream");
    assert.equal(typeof DecompressionStream, "undefined");
    await assert.rejects(decompress(new Uint8Array(deflateSync(bytes)), bytes.length), /2023 or later/);
  } finally {
    globalThis.DecompressionStream = native;
  }
});

test("deltas wrap around modulo 256", () => {
  const levels = Uint8Array.of(250, 3, 10, 253, 0, 7);
  assert.deepEqual(undelta(levels, 2), Uint8Array.of(250, 3, 4, 0, 4, 7));
});

test("base64 and bits unpack in order", () => {
  assert.deepEqual(fromBase64("AP8Q"), Uint8Array.of(0, 255, 16));
  assert.deepEqual([...unpackBits(Uint8Array.of(0b10100000, 0b01000000), 10)], [1, 0, 1, 0, 0, 0, 0, 0, 0, 1]);
});
