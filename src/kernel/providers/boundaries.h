// SPDX-License-Identifier: Apache-2.0
// Where the instructions of a function begin: a probe between the bytes of one would break the
// program that it is set in.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace clew::kernel {

// Offsets of the instructions in `code`, from its first byte on, ascending. Empty when some byte of
// it does not decode: then none can be trusted.
std::vector<uint64_t> instruction_offsets(std::span<const uint8_t> code);

}  // namespace clew::kernel
