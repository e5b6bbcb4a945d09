// SPDX-License-Identifier: Apache-2.0
#include "inline/file_size_limit.h"

#include <cerrno>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error_text.h"

namespace clew::inline_ {

FileSizeLimit::FileSizeLimit() {
  if (getrlimit(RLIMIT_FSIZE, &before_) != 0 || before_.rlim_cur == RLIM_INFINITY) return;
  // The first needs CAP_SYS_RESOURCE.
  for (const rlim_t hard : {rlim_t{RLIM_INFINITY}, before_.rlim_max}) {
    const rlimit wanted = {.rlim_cur = hard, .rlim_max = hard};
    is_raised_ = setrlimit(RLIMIT_FSIZE, &wanted) == 0;
    if (is_raised_) return;
  }
}

FileSizeLimit::~FileSizeLimit() {
  if (is_raised_) (void)setrlimit(RLIMIT_FSIZE, &before_);
}

Expected<void> FileSizeLimit::set_size(int file, uint64_t size_bytes) const {
  if (ftruncate(file, static_cast<off_t>(size_bytes)) == 0) return {};
  if (errno != EFBIG) {
    return fail(ErrorCode::Io,
                fmt::format("memory file of {} bytes: {}", size_bytes, error_text(errno)));
  }
  return fail(ErrorCode::Limit,
              fmt::format("a session's memory is a file of {} MiB, and files may have {} MiB here "
                          "(ulimit -f); raise that limit [file-size]",
                          size_bytes >> 20, before_.rlim_max >> 20));
}

}  // namespace clew::inline_
