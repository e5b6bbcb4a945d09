// SPDX-License-Identifier: Apache-2.0
#include "engine/record/adopting.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "engine/record/manifest.h"
#include "engine/record/recorded_process.h"
#include "engine/record/thread_status.h"
#include "inline/is_recorded.h"

namespace clew::engine {

using recorder::file_of;

Expected<void> clean_up_after_recorder(pid_t pid) {
  if (!inline_::is_recorded(pid)) return {};
  const auto arena = inline_::look_at(pid);
  if (arena && !arena->sessions.empty()) CLEW_TRY(inline_::clean_up(pid, false));
  return {};
}

// Threads that have ended since nobody has seen.
Expected<void> RecordedProcess::adopt_lobes() {
  const pid_t process = attachment_->pid();
  lobes_.emplace(CLEW_TRY(LobeFile::adopt(process, attachment_->arena().slot_count)));
  // The process runs, and can write there.
  const std::vector<uint8_t> note(lobes_->note().begin(), lobes_->note().end());
  auto manifest = parse_manifest(note);
  if (!manifest) {
    return fail(
        ErrorCode::Refused,
        fmt::format("process {} was recorded before, and does not say how [recorded]", process));
  }
  before_ = std::move(manifest->modules);
  if (manifest->answers != 0) {
    answers_ = CLEW_TRY(inline_::Answers::adopt(*attachment_, modules_, manifest->answers));
  }
  find_slots();
  const std::vector<pid_t> others = children();
  std::vector<pid_t> gone;
  for (const auto& [tid, slot] : slots_) {
    const auto thread = static_cast<pid_t>(tid);
    if (tid >= abi::kTidReserved) continue;
    const pid_t its = status_of(thread).process;
    const bool is_ours =
        its == process || std::find(others.begin(), others.end(), its) != others.end();
    if (its == 0 || !is_ours) gone.push_back(thread);
  }
  for (const pid_t thread : gone)
    ended(thread);
  log_step(process, "was recorded before: {} files have copies, and {} slots are free again",
           before_.size(), gone.size());
  return {};
}

// True when the module has copies already. They are led to again if they are what we would make.
Expected<bool> RecordedProcess::adopt(const Planned& planned) {
  const target::ProcessModule& module = planned.module;
  const auto before =
      std::find_if(before_.begin(), before_.end(), [&](const recorder::SnapModule& one) {
        return one.path == module.path && one.load_bias == module.load_bias &&
               one.build_id == module.build_id;
      });
  if (before == before_.end()) return false;
  const auto refuse = [&] {
    return fail(ErrorCode::Refused,
                fmt::format("process {} has copies of its functions that are not those that would "
                            "be made now [recorded]",
                            attachment_->pid()));
  };
  const uint32_t cursor = places_of({}).cursor;
  if (before->recipe.cursor != cursor) return refuse();
  auto shared = CLEW_TRY(files_.analyse_again(module, *planned.file, before->recipe));
  const bool is_same = shared->digest() == before->digest &&
                       shared->copy().code_size == before->code_size &&
                       shared->module().counts().ids == before->id_count;
  if (!is_same) return refuse();
  const inline_::CopyRoom room =
      CLEW_TRY(attachment_->room_at(before->copy_address, room_bytes(shared->module())));
  auto windows = CLEW_TRY(write(module, *shared, room, CopiesAre::There));
  CLEW_TRY(attachment_->lead_to_copies(std::move(windows), inline_::Attachment::Leads::ToCopies));
  log_step(attachment_->pid(), "{}: the copies of {} functions are led to again", module.path,
           shared->module().counts().functions);
  installed_.push_back({std::move(shared), std::move(*before), room, planned});
  before_.erase(before);
  return true;
}

Expected<void> RecordedProcess::check_same(uint64_t address, std::span<const uint8_t> bytes) const {
  std::vector<uint8_t> there(bytes.size());
  CLEW_TRY(target::read_memory(attachment_->pid(), address, there));
  if (std::equal(bytes.begin(), bytes.end(), there.begin())) return {};
  return fail(ErrorCode::Refused, "its copies are not those that would be made now [recorded]");
}

void RecordedProcess::write_manifest(const recorder::SnapModule* next) {
  Manifest manifest{.answers = answers_ ? answers_->address() : 0, .modules = before_};
  for (const Installed& one : installed_)
    manifest.modules.push_back(one.described);
  if (next != nullptr) manifest.modules.push_back(*next);
  if (!lobes_->write_note(manifest_bytes(manifest)))
    log_step(attachment_->pid(), "has too many files to be recorded by another recorder");
}

}  // namespace clew::engine
