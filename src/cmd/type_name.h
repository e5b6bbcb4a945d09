// SPDX-License-Identifier: Apache-2.0
// Names of types of C++ as programs write them.
#pragma once

#include <string>

namespace clew::cmd {

// Of a name as the ABI writes it (N4shop7RefusedE). It comes from a traced process: what is none,
// is long, or could become long, because it refers to its own parts again and again, stays as it
// is.
std::string readable_type(const std::string& name);

}  // namespace clew::cmd
