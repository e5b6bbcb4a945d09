// SPDX-License-Identifier: Apache-2.0
// What the files of Coder share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "abi/context.h"
#include "isa/program.h"
#include "query/query.h"

namespace clew::plan {

inline constexpr isa::Register kContext = isa::Register::R6;
inline constexpr isa::Register kRecord = isa::Register::R7;
inline constexpr isa::Register kElapsed = isa::Register::R8;
// Of programs in the kernel.
inline constexpr isa::Register kLoaded = isa::Register::R7;
inline constexpr isa::Register kReadable = isa::Register::R8;

static_assert(query::kArgumentsMax == 6 + abi::kStackArgumentsMax);
static_assert(query::kVectorArgumentsMax == abi::kVectorArgumentsMax);

inline bool fits_immediate(int64_t value) {
  return value >= std::numeric_limits<int32_t>::min() &&
         value <= std::numeric_limits<int32_t>::max();
}

// Of an argument of the traced function, in the context.
inline int32_t argument_offset(uint16_t index) {
  if (index >= query::kVectorArgument) {
    const size_t vector = size_t{index} - query::kVectorArgument;
    return static_cast<int32_t>(offsetof(abi::Context, vectors) + 8 * vector);
  }
  if (index < 6) return static_cast<int32_t>(offsetof(abi::Context, arguments) + size_t{8} * index);
  return static_cast<int32_t>(offsetof(abi::Context, stack_arguments) + size_t{8} * (index - 6U));
}

inline bool is_text(const query::Type& type) {
  return type.kind == query::TypeKind::String || type.kind == query::TypeKind::Bytes;
}

inline uint32_t text_words(uint32_t bytes) {
  return (bytes + 7) / 8;
}

}  // namespace clew::plan
