// SPDX-License-Identifier: Apache-2.0
// What print() shows: the bytes of a C structure as an object of JSON, on one line.
#pragma once

#include <string>
#include <string_view>

#include "query/query.h"

namespace clew::answer {

// {"id": 7, "name": "shop", "state": "PAID", "next": "0x55d0c8a0"}. Enumerators and pointers are
// strings; "..." stands for what is not known, or behind the bytes.
std::string structure_text(const query::Query& query, const query::Structure& structure,
                           std::string_view bytes);

}  // namespace clew::answer
