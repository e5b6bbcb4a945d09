// SPDX-License-Identifier: Apache-2.0
// The numbers that the kernel gives to sockets (their inodes'), as they are on each processor.
#pragma once

#include <cstdint>
#include <vector>

namespace clew::target {

// A number that each processor on which this process may run has given during the call; one of them
// is behind all that processors had taken for later. Empty: they do not count upwards.
std::vector<uint32_t> socket_numbers();

}  // namespace clew::target
