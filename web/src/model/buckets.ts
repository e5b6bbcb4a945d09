// SPDX-License-Identifier: Apache-2.0
// The buckets of distributions, in order, with both bounds as far as they are known.
import type { Bucket, Value } from '../stream/lines';

/** A name that equal buckets share, which sorts them. */
export interface Slot { key: string; order: number; bucket: Bucket }

export function slotOf(bucket: Bucket): Slot {
  if (bucket.below !== undefined) return { key: `<${bucket.below}`, order: bucket.below - 1e-9 - Math.abs(bucket.below) * 1e-12, bucket };
  if (bucket.at_least !== undefined) return { key: `>${bucket.at_least}`, order: bucket.at_least, bucket };
  if (bucket.at_most !== undefined) return { key: `=<${bucket.at_most}`, order: bucket.at_most, bucket };
  const at = bucket.value ?? bucket.around ?? 0;
  return { key: String(at), order: Number(at), bucket };
}

export function bucketsOf(value: Value | undefined): Bucket[] {
  return Array.isArray(value) ? (value as Bucket[]) : [];
}

/** The upper bound of a bucket of powers of two; null where it is none. */
function doubled(slots: Slot[]): boolean {
  return slots.length > 0 && slots.every((it) => it.bucket.value !== undefined &&
    (it.bucket.value === 0 || Number.isInteger(Math.log2(Math.abs(it.bucket.value)))));
}

/** All slots from the lowest to the highest, with those between that are empty, for powers of two. */
export function filled(slots: Slot[]): Slot[] {
  const sorted = [...slots].sort((a, b) => a.order - b.order);
  if (!doubled(sorted)) return sorted;
  const byKey = new Map(sorted.map((it) => [it.key, it]));
  const positive = sorted.filter((it) => it.order > 0);
  if (positive.length === 0) return sorted;
  const result = sorted.filter((it) => it.order <= 0);
  for (let at = positive[0]!.order; at <= positive[positive.length - 1]!.order; at *= 2) {
    result.push(byKey.get(String(at)) ?? slotOf({ value: at, count: 0 }));
  }
  return result;
}
