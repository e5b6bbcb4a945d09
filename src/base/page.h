// SPDX-License-Identifier: Apache-2.0
// The size of pages on x86-64.
#pragma once

#include <cstdint>

namespace clew {

inline constexpr uint64_t kPage = 4096;

}  // namespace clew
