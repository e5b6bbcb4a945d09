// SPDX-License-Identifier: Apache-2.0
// A path without its folders.
#pragma once

#include <string_view>

namespace clew {

inline std::string_view file_name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0: all of it.
}

}  // namespace clew
