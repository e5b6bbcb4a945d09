// SPDX-License-Identifier: Apache-2.0
// C types, as debug information has them, to the Structures that print() shows.
#pragma once

#include "query/c_types.h"
#include "query/query.h"

namespace clew::query {

inline constexpr size_t kStructureValuesMax = 512;     // In all of one.
inline constexpr unsigned kStructureDepthMax = 8;      // Records and arrays in each other.
inline constexpr uint64_t kStructureElementsMax = 64;  // Shown of an array.

// What is beyond these bounds is Unknown.
Structure structure_of(CTypes& types, const CTypeRef& type);

}  // namespace clew::query
