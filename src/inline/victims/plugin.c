// SPDX-License-Identifier: Apache-2.0
// A library for the counter victim: its constructor calls the traced function, too.
static long calls;

__attribute__((noinline)) long plugin_work(long value) {
  ++calls;
  return value * 5 + calls;
}

long plugin_calls(void) {
  return calls;
}

__attribute__((constructor)) static void start(void) {
  for (long i = 0; i < 5; ++i)
    plugin_work(i);
}
