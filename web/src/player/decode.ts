/** Turn base64 into bytes. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index += 1) bytes[index] = binary.charCodeAt(index);
  return bytes;
}

/** Inflate zlib data of known inflated size; browsers from 2023 on can do it. */
export async function decompress(bytes: Uint8Array<ArrayBuffer>, size: number): Promise<Uint8Array> {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser cannot unpack films (DecompressionStream); open the page in one from 2023 or later");
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const inflated = new Uint8Array(await new Response(stream).arrayBuffer());
  if (inflated.length !== size) throw new Error(`the film has ${inflated.length} bytes where ${size} were expected`);
  return inflated;
}

/** Undo the delta in time, in place: each frame was stored as its change from the one before, modulo 256. */
export function undelta(levels: Uint8Array, frameSize: number): Uint8Array {
  for (let index = frameSize; index < levels.length; index += 1) {
    levels[index] = (levels[index] as number) + (levels[index - frameSize] as number);
  }
  return levels;
}

/** Unpack a mask's bits, first pixel in the highest bit. */
export function unpackBits(bytes: Uint8Array, count: number): Uint8Array {
  return Uint8Array.from({ length: count }, (_, index) => ((bytes[index >> 3] as number) >> (7 - (index & 7))) & 1);
}
