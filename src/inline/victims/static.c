// SPDX-License-Identifier: Apache-2.0
// A static program: its constructor and main call the traced function of plugin.c. Exits with the
// number of calls.
long plugin_work(long value);
long plugin_calls(void);

int main(void) {
  for (long i = 0; i < 7; ++i)
    plugin_work(i);
  return (int)plugin_calls();
}
