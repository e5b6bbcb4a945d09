// SPDX-License-Identifier: Apache-2.0
// What print() shows: bytes as a C initialiser, each value with its type in front, nested by four
// blanks. Members that are zero are left out; "..." stands where the bytes end too early (option
// printsize).
//
//     (struct point) {
//         .x = (int)3,
//         .name = (char [8])"origin",
//     }
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "query/d/types.h"

namespace clew::output::d {

void append_structure(const query::d::TypeTable& types, query::d::TypeId type,
                      std::span<const uint8_t> bytes, std::string& out);

}  // namespace clew::output::d
