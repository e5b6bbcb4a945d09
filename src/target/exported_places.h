// SPDX-License-Identifier: Apache-2.0
// Where things are that a file exports, functions and data, by name: by its dynamic table alone, as
// its loader sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace clew::target {

// In the file's address space, one for each name; nothing where it exports no such thing, or only
// one that its code makes up (IFUNC, TLS). Errors: as ModuleImage::read(), and Io when the tables
// cannot be read.
Expected<std::vector<std::optional<uint64_t>>> read_exported_places(
    const std::string& path, std::span<const std::string_view> names);

}  // namespace clew::target
