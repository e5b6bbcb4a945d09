// SPDX-License-Identifier: Apache-2.0
// Fuzzes the D accessors of processes: the input fills the memory that others write, and calls
// them. What is called is their source with coverage and sanitizers; the machine code that
// processes get is in hostile_accessors_test.cc.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include <sys/mman.h>

#include "base/assert.h"
#include "hostile_input.h"
#include "hostile_session.h"

extern "C" uint8_t clew_d_thunks[];
extern "C" uint8_t clew_d_place[];

// Copies of window memory may overlap: what they leave is nobody's, and no harm is done.
extern "C" const char* __asan_default_options() {
  return "replace_intrin=0";
}

namespace {

using clew::accessors::HostileSession;
using clew::accessors::kShapes;

// The constants of the accessors lie beside their thunks, in the program's code.
void set_place(const clew::abi::MachinePlace& place) {
  constexpr uintptr_t kPage = 4096;
  auto* const page =
      reinterpret_cast<uint8_t*>(reinterpret_cast<uintptr_t>(clew_d_place) & ~(kPage - 1));
  CLEW_ASSERT(mprotect(page, 2 * kPage, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
  std::memcpy(clew_d_place, &place, sizeof place);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static std::unique_ptr<HostileSession> session;
  static uint32_t shape = kShapes;
  if (size == 0) return 0;
  if (data[0] % kShapes != shape) {
    shape = data[0] % kShapes;
    session.reset();
    session = std::make_unique<HostileSession>(shape);
    set_place(session->place());
    session->set_thunks(reinterpret_cast<uint64_t>(clew_d_thunks));
  }
  session->clear();
  session->allow_system_calls(true);
  clew::accessors::run(*session, {data + 1, size - 1});
  CLEW_ASSERT(session->has_paint());
  return 0;
}
