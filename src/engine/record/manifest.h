// SPDX-License-Identifier: Apache-2.0
// What a recorder has put into a process, for the next one of that process: it lies behind the
// lobes, where the process can write, too. So it is believed only as far as what it says is found
// in the process: copies and answers are made anew and compared.
//
//     magic 8, room of the answers 8 (address; 0: none), size 8, a snap of modules alone (snap.h)
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "recorder/snap.h"

namespace clew::engine {

struct Manifest {
  uint64_t answers = 0;
  std::vector<recorder::SnapModule> modules;
};

std::vector<uint8_t> manifest_bytes(const Manifest& manifest);
// Nothing when it is none.
std::optional<Manifest> parse_manifest(std::span<const uint8_t> bytes);

}  // namespace clew::engine
