// SPDX-License-Identifier: Apache-2.0
// One exported function of a file, by itself: its place and its machine code, without what a
// ModuleImage would read of all others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace clew::target {

struct ExportedCode {
  uint64_t address = 0;        // In the file's address space.
  std::vector<uint8_t> bytes;  // As many as its symbol says, and `size_max` at most.
};

// Nothing when no function of that name is exported, or only an IFUNC, a label or what old programs
// get. Errors: as
// ModuleImage::read(), and Io when its bytes cannot be read.
Expected<std::optional<ExportedCode>> read_exported_code(const std::string& path,
                                                         std::string_view name, uint64_t size_max);

}  // namespace clew::target
