// SPDX-License-Identifier: Apache-2.0
// The limit of file sizes (ulimit -f, RLIMIT_FSIZE) counts memory files as well: while one of these
// lives, the tracer may make files as large as its rights allow. Commands that it starts meanwhile
// would have that limit, too.
#pragma once

#include <cstdint>

#include <sys/resource.h>

#include "base/error.h"

namespace clew::inline_ {

class FileSizeLimit {
 public:
  FileSizeLimit();
  ~FileSizeLimit();
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

  // Gives a memory file its size. Limit when that is more than is allowed.
  [[nodiscard]] Expected<void> set_size(int file, uint64_t size_bytes) const;

 private:
  rlimit before_{};
  bool is_raised_ = false;
};

}  // namespace clew::inline_
