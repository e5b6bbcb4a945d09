// SPDX-License-Identifier: Apache-2.0
// What the two manglings of Rust share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace clew::target {

// Whether `code` is a character: no surrogate, and not beyond Unicode.
bool is_scalar_value(uint64_t code);
// `code` is a scalar value.
void append_utf8(std::string& out, uint32_t code);

// The legacy mangling, behind its `_ZN`. False when it is not of Rust: there is no hash at its end.
bool demangle_rust_legacy(std::string_view text, std::string& out);

}  // namespace clew::target
