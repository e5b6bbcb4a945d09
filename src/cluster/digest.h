// SPDX-License-Identifier: Apache-2.0
// What a text is known by, and what a node is meant by.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "cluster/message.h"
#include "target/sha256.h"

namespace clew::cluster {

inline Digest digest_of(const std::string& text) {
  target::Sha256 hash;
  hash.add({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  const target::Digest bytes = hash.finish();
  Digest digest{};
  std::ranges::copy(std::as_bytes(std::span(bytes)), digest.begin());
  return digest;
}

using Labels = std::map<std::string, std::string>;

// Whether all that are wanted are there.
inline bool has_labels(const Labels& labels, const Labels& wanted) {
  return std::ranges::all_of(wanted, [&labels](const auto& one) {
    const auto found = labels.find(one.first);
    return found != labels.end() && found->second == one.second;
  });
}

}  // namespace clew::cluster
