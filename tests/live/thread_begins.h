// SPDX-License-Identifier: Apache-2.0
// Where threads begin, in the words of frames: the C library's first function of a thread has a
// name with libc6-dbg alone.
#pragma once

#include <set>
#include <string>

namespace clew::live {

std::string output_of_readelf(const char* what, const char* path);

// How a frame without such a name is printed, "libc.so.6+0x1098e1": functions whose caller has no
// address by their call frame information.
const std::set<std::string>& begins_of_threads();

}  // namespace clew::live
