// SPDX-License-Identifier: Apache-2.0
// What the system says about an error number.
#pragma once

#include <string>
#include <system_error>

namespace clew {

// `error` is a value of errno. Any thread.
inline std::string error_text(int error) {
  return std::generic_category().message(error);
}

}  // namespace clew
