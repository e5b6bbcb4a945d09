// SPDX-License-Identifier: Apache-2.0
// A checked copy in a file that is kept for the next time (target/cache_folder.h). One that is read
// is not checked again: that needs the analysis which it spares. It is one that had passed when it
// was written, as nobody else may write into that folder, and what damages a file changes its
// checksums. All the same its lists are read as a stranger's: they are in bounds and in order.
#pragma once

#include <optional>

#include "copy/check.h"
#include "target/cache_folder.h"

namespace clew::copy {

class KeptCopy {
 public:
  // Not moved. What forget_places() forgets is left out.
  static void write(target::BlockWriter& file, const CheckedCopy& copy);
  // Nothing when it is damaged.
  static std::optional<CheckedCopy> read(target::BlockReader& file);
};

}  // namespace clew::copy
