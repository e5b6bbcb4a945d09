// SPDX-License-Identifier: Apache-2.0
// One window at one place: whether the instructions from `start` can be displaced, and what the
// window is. Which place to take, and conflicts between windows, are the planner's.
#pragma once

#include <cstdint>

#include <tl/expected.hpp>

#include "code/module_code.h"
#include "code/window.h"

namespace clew::code {

struct WindowWish {
  uint64_t start = 0;
  uint64_t last = 0;  // The window must contain the instruction at this address.
  WindowClass window_class = WindowClass::OwnBytes;
  uint8_t kept_bytes = 0;  // Window::kept_bytes.
};

// The smallest such window of that class. A ShortJump's hop is not set.
tl::expected<Window, RefusalReason> build_window(const ModuleCode& code, const WindowWish& wish);

// Behind the last byte that the window displaces or overwrites at its own place.
uint64_t end_of(const Window& window);

// May a window that contains `address` begin one instruction earlier? The earlier address, or 0.
uint64_t earlier_start(const ModuleCode& code, uint64_t address);

}  // namespace clew::code
