// SPDX-License-Identifier: Apache-2.0
// For rows in which everything has its name already: joined ones, and those of recordings.
#pragma once

#include <cstdint>
#include <string>

#include "answer/names.h"

namespace clew::answer {

class NoNames final : public Names {
 public:
  std::string function(uint64_t) override { return {}; }
  std::string module(uint64_t) override { return {}; }
  std::string probe(uint64_t) override { return {}; }
  int64_t pid(uint64_t) override { return 0; }
  std::string process_name(uint64_t) override { return {}; }
  std::string thread_name(uint64_t, uint64_t) override { return {}; }
  std::string host() override { return {}; }
  std::string node_name(uint64_t) override { return {}; }
  const Owner& owner(query::Field, uint64_t) override { return owner_; }
  std::string symbol(uint64_t) override { return {}; }

 private:
  Owner owner_;
};

}  // namespace clew::answer
