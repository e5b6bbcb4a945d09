// SPDX-License-Identifier: Apache-2.0
#include "engine/session_file.h"

#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include "base/error_text.h"
#include "inline/file_size_limit.h"

namespace clew::engine {
namespace {

constexpr const char* kFileName = "clew-arena-session";  // inline/shared_parts.h

}  // namespace

Expected<FileDescriptor> make_session_file(uint64_t size_bytes) {
  FileDescriptor file(memfd_create(kFileName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) {
    return fail(ErrorCode::Io, fmt::format("memory of a session: {}", error_text(errno)));
  }
  CLEW_TRY(inline_::FileSizeLimit().set_size(file.get(), size_bytes));
  (void)fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return file;
}

Expected<FileDescriptor> open_read_only(const FileDescriptor& file) {
  FileDescriptor reader(
      open(fmt::format("/proc/self/fd/{}", file.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (reader.valid()) return reader;
  return fail(ErrorCode::Io, fmt::format("memory of a session: {}", error_text(errno)));
}

}  // namespace clew::engine
