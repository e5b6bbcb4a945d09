// SPDX-License-Identifier: Apache-2.0
// Whether exceptions may go through the functions of a file.
#pragma once

#include <string>

namespace clew::inline_ {

// Also when that cannot be read.
bool exceptions_pass(const std::string& path);

}  // namespace clew::inline_
