// SPDX-License-Identifier: Apache-2.0
// Python's memory in which some words are others: what is read of it is sound and bounded. Lines of
// any table are found without harm.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "recorder/python_calls.h"
#include "recorder/python_lines.h"
#include "recorder/python_testing.h"

namespace {

using namespace clew::recorder;
using namespace clew::recorder::python_testing;

// Three calls; objects lie a page from each other, up to kObjectsMax of them.
constexpr uint64_t kObjectsMax = 24;

PythonWorld some_world() {
  PythonWorld world;
  const uint64_t file = world.text("/app.py");
  const uint64_t outer = world.code(world.text("outer"), file, 1);
  const uint64_t inner = world.code(world.wide_text(U"inn\u00e4r"), file, 20);
  const uint64_t first = world.frame(outer, 5, 0, true);
  const uint64_t second = world.frame(inner, 0, first, false);
  world.thread(kThread, world.frame(inner, 15, second, true));
  return world;
}

// A pointer to an object, a type, a small number, or a large one.
uint64_t word_of(uint8_t choice) {
  constexpr std::array<uint64_t, 8> kWords = {
      kCode, kText, kBytes, kRuntime, kFirstInterpreter, UINT64_MAX, 0x7fff'ffff, 4096};
  const size_t special = choice - kObjectsMax;
  if (choice < kObjectsMax) return kObjects + choice * PythonWorld::kObjectBytes;
  return special < kWords.size() ? kWords[special] : special - kWords.size();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const PythonLines lines({data, size}, data[0]);
  (void)lines.at(size);
  PythonWorld world = some_world();
  // An object, a word of it, and what is there now.
  for (size_t i = 0; i + 2 < size; i += 3) {
    const uint64_t object = data[i] == 0xff
                                ? kFirstInterpreter
                                : kObjects + data[i] % kObjectsMax * PythonWorld::kObjectBytes;
    world.put(object + data[i + 1] * sizeof(uint64_t), word_of(data[i + 2]));
  }
  const Scripts scripts = world.read();
  CLEW_ASSERT(is_sound(scripts));
  size_t calls = 0;
  for (const ScriptStack& stack : scripts.stacks)
    calls += stack.calls.size();
  CLEW_ASSERT(calls <= kAllPythonCallsMax);
  return 0;
}
