// SPDX-License-Identifier: Apache-2.0
// Where instructions of a file's code begin, from a few bytes of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace clew::code {

// Can a patch of `size` bytes begin at `at`: does an instruction begin there, or do the bytes lie
// between functions? Nobody says where instructions of a file begin, but who reads them one behind
// the other from any byte on is soon right: so several that begin before it have to agree. Without
// enough bytes in front the answer is no. `begins`, ascending, is where sections do, as what is in
// front of these need not be code.
bool can_be_patched(std::span<const uint8_t> code, size_t at, size_t size,
                    std::span<const size_t> begins = {});

// So many bytes in front are looked at.
inline constexpr size_t kCodeInFront = 64;

}  // namespace clew::code
