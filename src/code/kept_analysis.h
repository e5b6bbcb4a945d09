// SPDX-License-Identifier: Apache-2.0
// Analyses of modules, kept for the next session (target/cache_folder.h). What they say decides
// where text is changed. So one is known by the SHA-256 of all that the analysis looks at, which is
// in our memory already, and by the very program that made it: no other text and no other version
// of Clew finds it. The files are read as what they are, our own; damage is found by their
// checksums.
#pragma once

#include <optional>
#include <string>

#include "code/module_code.h"
#include "target/cache_folder.h"
#include "target/sha256.h"

namespace clew::code {

// Of all that an analysis of the text looks at, and of the program that is running; nothing when
// that cannot be known.
std::optional<target::Digest> digest_of(const ModuleText& text);

class KeptAnalyses {
 public:
  // Without a folder nothing is kept. Texts of fewer bytes are analysed faster than they are found.
  explicit KeptAnalyses(const std::string& folder, uint64_t from_bytes = uint64_t{256} << 10)
      : folder_(folder), is_on_(!folder.empty()), from_bytes_(from_bytes) {}

  // code::analyse(text), from the folder when it is there. Borrows as that does.
  [[nodiscard]] ModuleCode analyse(const ModuleText& text) const;

 private:
  target::CacheFolder folder_;
  bool is_on_;
  uint64_t from_bytes_;
};

}  // namespace clew::code
