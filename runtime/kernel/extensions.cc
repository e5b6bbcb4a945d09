// SPDX-License-Identifier: Apache-2.0
// What functions of extensions call (src/kernel/extension_to_bpf.h). Their addresses are offsets in
// the thread's area (abi/machine/extension.h).
#include "abi/machine/extension.h"
#include "runtime/kernel/bpf.h"

namespace clew::runtime::kernel {

extern "C" {
extern uint8_t d_extension_states;  // The kernel's memory of threads: only its map is meant.
extern const char d_n_extension_mask;
}

namespace {

// The area of this thread; null when it has none yet.
[[gnu::always_inline]] inline uint8_t* extension_area() {
  auto* state = reinterpret_cast<uint8_t*>(
      helper<156>(&d_extension_states, current_task(), uint64_t{0}, uint64_t{0}));
  return state == nullptr ? nullptr : state + sizeof(abi::MachineExtensionHead);
}

[[gnu::always_inline]] inline bool is_of_kernel(uint64_t address) {
  return static_cast<int64_t>(address) < 0;
}

}  // namespace

extern "C" {

// 1, or 0 and the destination zeroed.
uint64_t d_extension_read(MachineWindow*, uint64_t to, uint64_t size, uint64_t address) {
  uint8_t* const area = extension_area();
  if (area == nullptr || size == 0 || size > kCopyBytesMax) return 0;
  uint8_t* const place = area + (to & number(d_n_extension_mask));
  const int64_t result = is_of_kernel(address) ? copy_kernel(place, size, pointer(address))
                                               : copy_user(place, size, pointer(address));
  return result == 0 ? 1 : 0;
}

// The length without NUL, or -1; the rest is zeroed.
uint64_t d_extension_read_string(MachineWindow*, uint64_t to, uint64_t size, uint64_t address) {
  uint8_t* const area = extension_area();
  if (area == nullptr || size == 0 || size > kCopyBytesMax) return ~uint64_t{0};
  uint8_t* const place = area + (to & number(d_n_extension_mask));
  zero_bytes(place, size);
  const int64_t length = is_of_kernel(address) ? copy_kernel_text(place, size, pointer(address))
                                               : copy_user_text(place, size, pointer(address));
  if (length < 0) return ~uint64_t{0};
  return length == 0 ? 0 : static_cast<uint64_t>(length) - 1;
}

uint64_t d_extension_time(MachineWindow*) {
  return monotonic_ns();
}

// The firing ends here, with all its clauses.
uint64_t d_extension_end(MachineWindow* w, uint64_t why) {
  abi::MachineLosses& losses = shared().losses;
  if (why == static_cast<uint64_t>(abi::MachineExtensionEnd::Fuel)) {
    abi::add_word(losses.fuel, 1);
  } else if (why == static_cast<uint64_t>(abi::MachineExtensionEnd::Nested)) {
    abi::add_word(losses.nested, 1);
  } else {
    abi::add_word(losses.dynamic, 1);
  }
  w->header.run_when = ~uint64_t{0};  // No clause of the firing runs then.
  return fail(w, MachineFault::Dropped, 0);
}

}  // extern "C"

}  // namespace clew::runtime::kernel
