// SPDX-License-Identifier: Apache-2.0
#include "engine/process_stacks.h"

#include <array>

#include "base/page.h"
#include "engine/session_file.h"

namespace clew::engine {

Expected<std::span<uint8_t>> ProcessStacks::make_memory(size_t size_bytes) {
  const size_t whole_pages = (size_bytes + kPage - 1) / kPage * kPage;
  file_ = CLEW_TRY(make_session_file(whole_pages));
  memory_ = CLEW_TRY(kernel::Mapping::make(file_, whole_pages, true));
  return std::span<uint8_t>(memory_.data(), memory_.size_bytes());
}

Expected<void> ProcessStacks::share(inline_::Attachment& attachment) {
  if (tables_) {
    tables_->add_target(attachment.pid());
  } else {
    tables_ = CLEW_TRY(kernel::UserStacks::make(
        {.spaces = &spaces_, .targets = {attachment.pid()}, .memory = [this](size_t size_bytes) {
           return make_memory(size_bytes);
         }}));
  }
  const FileDescriptor reader = CLEW_TRY(open_read_only(file_));
  const std::array<inline_::SharedPart, 1> parts = {
      {{.descriptor = reader.get(), .size_bytes = memory_.size_bytes()}}};
  const std::vector<uint64_t> places = CLEW_TRY(attachment.share(parts));
  attachment.use_unwind_tables(places[0], tables_->rows_max());
  return {};
}

}  // namespace clew::engine
