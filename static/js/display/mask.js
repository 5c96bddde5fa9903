// The mask of an image for any threshold, from its activation map: what the laboratory does (workers/lab/imaging.py).

const DIMMED = 0.55;
const COLOUR = 0.5;
const LUMA = [0.299, 0.587, 0.114];
const LINE = [255, 32, 32];

// The values of a grey image, from 0 to 1, scaled bilinearly to the size of its image.
export function enlarge({ data, width, height }, wide, high) {
  const values = new Float32Array(wide * high);
  const columns = cells(wide, width);
  const rows = cells(high, height);
  for (let y = 0, at = 0; y < high; y++) {
    const [above, below, down] = rows[y];
    for (let x = 0; x < wide; x++, at++) {
      const [left, right, across] = columns[x];
      const of = (row, column) => data[4 * (row * width + column)];
      const top = of(above, left) * (1 - across) + of(above, right) * across;
      const bottom = of(below, left) * (1 - across) + of(below, right) * across;
      values[at] = (top * (1 - down) + bottom * down) / 255;
    }
  }
  return values;
}

// For each pixel along a side: the two cells whose centres surround it, and the weight of the second.
function cells(pixels, count) {
  return Array.from({ length: pixels }, (_, pixel) => {
    const place = Math.min(Math.max(((pixel + 0.5) * count) / pixels - 0.5, 0), count - 1);
    const first = Math.floor(place);
    return [first, Math.min(first + 1, count - 1), place - first];
  });
}

// Dim the pixels that are not above the threshold, in place, and outline the others. Returns the share that stays
// bright. If no pixel is above it, the image does not change.
export function paint(pixels, values, threshold) {
  const bright = Uint8Array.from(values, (value) => (value > threshold ? 1 : 0));
  const count = bright.reduce((sum, each) => sum + each, 0);
  if (!count) return 0;
  const { data, width, height } = pixels;
  const near = grow(bright, width, height, Math.max(1, Math.round(Math.min(width, height) / 128)));
  for (let at = 0; at < bright.length; at++) {
    if (bright[at]) continue;
    const grey = LUMA.reduce((sum, weight, channel) => sum + weight * data[4 * at + channel], 0);
    for (let channel = 0; channel < 3; channel++)
      data[4 * at + channel] = near[at] ? LINE[channel] : DIMMED * (COLOUR * data[4 * at + channel] + (1 - COLOUR) * grey);
  }
  return count / bright.length;
}

// All pixels within `reach`, diagonally too.
function grow(mask, width, height, reach) {
  for (const [step, along, across] of [[1, width, height], [width, height, width]]) {
    const wider = mask.slice();
    for (let line = 0; line < across; line++) {
      const start = step === 1 ? line * width : line;
      for (let place = 0; place < along; place++) {
        if (!mask[start + place * step]) continue;
        for (let near = Math.max(0, place - reach); near <= Math.min(along - 1, place + reach); near++) wider[start + near * step] = 1;
      }
    }
    mask = wider;
  }
  return mask;
}
