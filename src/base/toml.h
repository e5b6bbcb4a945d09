// SPDX-License-Identifier: Apache-2.0
// toml++, the same in every file that includes it. The shared library of Debian is built with
// exceptions; the header alone is not. It asserts, or lets a compiler assume, that a key begins as
// one, and refuses what does not right behind that ("[(").
#pragma once

#undef NDEBUG
#define TOML_ASSERT(condition) static_assert(true)
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <string>

#include <toml++/toml.h>

namespace clew {

// What is wrong with a text, as an error of ours says it.
std::string toml_problem(const toml::parse_error& error);

}  // namespace clew
