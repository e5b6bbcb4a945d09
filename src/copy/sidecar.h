// SPDX-License-Identifier: Apache-2.0
// What was proved of a file, written and checked, kept for the next session
// (target/cache_folder.h): a sidecar. It is found by the SHA-256 of all that the analysis looks at
// and of the very program that made it, so no other file and no other version finds it.
//
// A sidecar that is read is not checked again: that needs the analysis which it spares. Instead it
// is the one that had passed the check when it was written, by the SHA-256 that it ends its header
// with. Against others its folder stands, where nobody else may write. All the same its bytes are
// read as a stranger's: what its lists say is in bounds and in order, or it is refused.
//
// | offset | size | content                                               |
// |      0 |    8 | magic "clewcpy\n"                                     |
// |      8 |    8 | version                                               |
// |     16 |   32 | key                                                   |
// |     48 |   32 | SHA-256 of all other bytes                            |
// |     80 |      | numbers (LEB128): the copy's address, then counts     |
// |        |      | the copy's bytes                                      |
// |        |      | functions, places, tables, fix-ups, refusals: numbers |
//
// Most numbers are distances from the one before, and a byte each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "copy/check.h"
#include "copy/facts.h"
#include "copy/prove_module.h"
#include "target/cache_folder.h"
#include "target/sha256.h"

namespace clew::copy {

using SidecarKey = target::Digest;

struct Sidecar {
  CheckedCopy copy;  // Not moved.
  uint64_t proved_bytes = 0;
  uint64_t refused_bytes = 0;
  std::vector<NotCopied> refused;  // As in ModuleProof.
};

// Nothing when it cannot be known which program we are.
std::optional<SidecarKey> sidecar_key(const FactsInput& input);

std::vector<uint8_t> encode(const SidecarKey& key, const Sidecar& sidecar);
// Errors: Refused, with what is wrong.
Expected<Sidecar> decode(const SidecarKey& key, std::span<const uint8_t> bytes);

class Sidecars {
 public:
  explicit Sidecars(const std::string& folder) : folder_(folder) {}

  // Nothing when there is none that can be used.
  [[nodiscard]] std::optional<Sidecar> find(const SidecarKey& key) const;
  // Best effort, as the folder's.
  void store(const SidecarKey& key, const Sidecar& sidecar) const;

 private:
  target::CacheFolder folder_;
};

}  // namespace clew::copy
