/** Inflate (RFC 1950, 1951) for browsers that have no DecompressionStream. */

const LENGTH_BASE = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
const LENGTH_EXTRA = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const DISTANCE_BASE = [
  1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577,
];
const DISTANCE_EXTRA = [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13];
const CODE_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/** A canonical Huffman code: how many codes each length has, and the symbols in order. */
interface Huffman { counts: Uint16Array; symbols: Uint16Array }

function huffman(lengths: ArrayLike<number>): Huffman {
  const counts = new Uint16Array(16);
  for (let symbol = 0; symbol < lengths.length; symbol += 1) counts[lengths[symbol] as number]! += 1;
  counts[0] = 0;
  const offsets = new Uint16Array(16);
  for (let length = 1; length < 15; length += 1) offsets[length + 1] = offsets[length]! + counts[length]!;
  const symbols = new Uint16Array(lengths.length);
  for (let symbol = 0; symbol < lengths.length; symbol += 1) {
    const length = lengths[symbol] as number;
    if (length > 0) symbols[offsets[length]!++] = symbol;
  }
  return { counts, symbols };
}

class Bits {
  private hold = 0;
  private held = 0;
  private readonly source: Uint8Array;
  position: number;

  constructor(source: Uint8Array, position: number) {
    this.source = source;
    this.position = position;
  }

  take(count: number): number {
    while (this.held < count) {
      if (this.position >= this.source.length) throw new Error("the compressed film ends early");
      this.hold |= (this.source[this.position] as number) << this.held;
      this.position += 1;
      this.held += 8;
    }
    const value = this.hold & ((1 << count) - 1);
    this.hold >>>= count;
    this.held -= count;
    return value;
  }

  align(): void {
    this.position -= this.held >> 3;
    this.hold = 0;
    this.held = 0;
  }

  symbol({ counts, symbols }: Huffman): number {
    let code = 0;
    let first = 0;
    let index = 0;
    for (let length = 1; length <= 15; length += 1) {
      code |= this.take(1);
      const count = counts[length] as number;
      if (code - count < first) return symbols[index + (code - first)] as number;
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    throw new Error("the compressed film is damaged: no such code");
  }
}

function fixedCodes(): [Huffman, Huffman] {
  const lengths = Array.from({ length: 288 }, (_, symbol) => (symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8));
  return [huffman(lengths), huffman(new Uint8Array(30).fill(5))];
}

function dynamicCodes(bits: Bits): [Huffman, Huffman] {
  const literals = bits.take(5) + 257;
  const distances = bits.take(5) + 1;
  const given = bits.take(4) + 4;
  const codeLengths = new Uint8Array(19);
  for (let index = 0; index < given; index += 1) codeLengths[CODE_ORDER[index] as number] = bits.take(3);
  const code = huffman(codeLengths);
  const lengths = new Uint8Array(literals + distances);
  for (let index = 0; index < lengths.length; ) {
    const symbol = bits.symbol(code);
    if (symbol < 16) {
      lengths[index] = symbol;
      index += 1;
      continue;
    }
    const previous = symbol === 16 ? (lengths[index - 1] ?? 0) : 0;
    const repeat = symbol === 16 ? 3 + bits.take(2) : symbol === 17 ? 3 + bits.take(3) : 11 + bits.take(7);
    lengths.fill(previous, index, index + repeat);
    index += repeat;
  }
  return [huffman(lengths.subarray(0, literals)), huffman(lengths.subarray(literals))];
}

/** Inflate zlib data whose inflated size is known. */
export function inflate(source: Uint8Array, size: number): Uint8Array {
  if (((source[0] as number) & 15) !== 8) throw new Error("the film is not deflated data");
  const output = new Uint8Array(size);
  const bits = new Bits(source, 2);
  let written = 0;
  for (let last = false; !last; ) {
    last = bits.take(1) === 1;
    const type = bits.take(2);
    if (type === 0) {
      bits.align();
      const length = bits.take(16);
      bits.take(16);
      bits.align();
      if (written + length > size) throw new Error("the film is longer than it says");
      output.set(source.subarray(bits.position, bits.position + length), written);
      bits.position += length;
      written += length;
      continue;
    }
    if (type === 3) throw new Error("the compressed film is damaged: no such block");
    const [literals, distances] = type === 1 ? fixedCodes() : dynamicCodes(bits);
    for (;;) {
      const symbol = bits.symbol(literals);
      if (symbol === 256) break;
      if (symbol < 256) {
        output[written++] = symbol;
        continue;
      }
      const length = (LENGTH_BASE[symbol - 257] as number) + bits.take(LENGTH_EXTRA[symbol - 257] as number);
      const code = bits.symbol(distances);
      const distance = (DISTANCE_BASE[code] as number) + bits.take(DISTANCE_EXTRA[code] as number);
      if (distance > written || written + length > size) throw new Error("the compressed film is damaged: bad distance");
      for (let index = 0; index < length; index += 1, written += 1) output[written] = output[written - distance] as number;
    }
  }
  if (written !== size) throw new Error(`the film has ${written} bytes where ${size} were expected`);
  return output;
}
