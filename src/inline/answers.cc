// SPDX-License-Identifier: Apache-2.0
#include "inline/answers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "code/module_code.h"
#include "inline/attachment_state.h"
#include "target/exported_code.h"
#include "target/linked_names.h"

namespace clew::inline_ {

namespace {

constexpr std::string_view kFinder = "_dl_find_object";
constexpr std::string_view kLister = "dl_iterate_phdr";

// The room: the table, the askers, and the code of either.
constexpr size_t kAskersPlace = (kAnswersMax + 1) * sizeof(AnswerRow);
constexpr size_t kFindingPlace = kAskersPlace + (kAskersMax + 1) * sizeof(Asker);
constexpr size_t kCodeBytesMax = 512;
constexpr size_t kListingPlace = kFindingPlace + kCodeBytesMax;
constexpr size_t kRoomBytes = kListingPlace + kCodeBytesMax;

constexpr uint64_t kSliceBytesMax = 4096;

// A window of any instructions is in it.
Expected<void> check_size(const AnsweringCode& code) {
  if (code.bytes.size() <= kCodeBytesMax) return {};
  return fail(ErrorCode::Limit, fmt::format("the code that answers unwinders has {} bytes, {} are "
                                            "possible",
                                            code.bytes.size(), kCodeBytesMax));
}

// The function by itself, which is decoded in no time: as it is compiled from C, nobody but itself
// leads behind its first byte.
code::ModuleText slice_of(const target::ExportedCode& finder) {
  code::ModuleText text;
  text.sections.push_back({finder.address, finder.bytes, true});
  text.functions.push_back({.address = finder.address, .size_bytes = finder.bytes.size()});
  return text;
}

bool is_named(const target::ProcessModule& module, std::span<const std::string_view> beginnings) {
  const std::string_view file = std::string_view(module.path).substr(module.path.rfind('/') + 1);
  return module.problem.empty() &&
         std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return file.starts_with(beginning); });
}

std::optional<target::ExportedCode> find_function(const target::ProcessModule& module,
                                                  std::string_view name) {
  constexpr std::array<std::string_view, 2> kLibraries = {"libc.so", "ld-linux"};
  if (!is_named(module, kLibraries)) return std::nullopt;
  auto function = target::read_exported_code(module.open_path, name, kSliceBytesMax);
  return function ? std::move(*function) : std::nullopt;
}

AnsweringPlaces places_in(const CopyRoom& room, const target::ProcessModule& module,
                          uint64_t function) {
  return {.function = function,
          .load_bias = module.load_bias,
          .code = room.address,
          .table = room.address,
          .askers = room.address + kAskersPlace};
}

Expected<AnsweringCode> finding_code(const target::ExportedCode& finder,
                                     const target::ProcessModule& module, const CopyRoom& room) {
  AnsweringPlaces places = places_in(room, module, finder.address);
  places.code += kFindingPlace;
  return make_finding_code(code::analyse(slice_of(finder)), places);
}

Expected<AnsweringCode> listing_code(const target::ExportedCode& lister,
                                     const target::ProcessModule& module, const CopyRoom& room) {
  AnsweringPlaces places = places_in(room, module, lister.address);
  places.code += kListingPlace;
  return make_listing_code(code::analyse(slice_of(lister)), places);
}

bool offers(const target::ProcessModule& module, std::string_view name) {
  const auto names = target::read_linked_names(module.open_path);
  return !names || std::any_of(names->exports.begin(), names->exports.end(),
                               [&](const auto& one) { return one.name == name; });
}

// Whose function is asked: of the only module that has one of this name. Namespaces of dlmopen()
// have C libraries of their own.
Expected<const target::ProcessModule*> find_lister(std::span<const target::ProcessModule> modules) {
  std::vector<const target::ProcessModule*> found;
  for (const target::ProcessModule& module : modules) {
    if (module.problem.empty() && offers(module, kLister)) found.push_back(&module);
  }
  if (found.size() == 1) return found.front();
  return fail(ErrorCode::Refused, fmt::format("{} modules of the process have {}() [unwinding]",
                                              found.size(), kLister));
}

// Code of the room that is there already, and the jump to it.
Expected<bool> is_there(Attachment& attachment, uint64_t place, const AnsweringCode& code) {
  std::vector<uint8_t> there(code.bytes.size());
  CLEW_TRY(target::read_memory(attachment.pid(), place, there));
  return there == code.bytes;
}

bool is_led(pid_t pid, const code::LedWindow& window) {
  return std::all_of(window.patches.begin(), window.patches.end(), [pid](const code::Patch& patch) {
    return holds(pid, patch.address, std::span(patch.replacement).first(patch.size_bytes));
  });
}

// Led by us or by who was there before.
Expected<void> lead(Attachment& attachment, AnsweringCode code) {
  if (!is_led(attachment.pid(), code.window))
    return attachment.lead_to_copies({code.window}, Attachment::Leads::ToAnswers);
  attachment.leads_to_answers(std::move(code.window));
  return {};
}

CopyRoom part_of(CopyRoom room, size_t place) {
  room.address += place;
  room.size_bytes -= place;
  return room;
}

// The room of who answers already: where the jump leads to that is the first thing which is not the
// file's. What is there is not known yet.
std::optional<uint64_t> room_before(pid_t pid, const target::ExportedCode& finder,
                                    const target::ProcessModule& module) {
  constexpr size_t kJumpBytes = 5;
  constexpr uint8_t kJump = 0xe9;
  std::vector<uint8_t> there(finder.bytes.size());
  const uint64_t function = module.load_bias + finder.address;
  if (!target::read_memory(pid, function, there)) return std::nullopt;
  const auto jump =
      std::mismatch(there.begin(), there.end(), finder.bytes.begin(), finder.bytes.end()).first;
  if (there.end() - jump < ptrdiff_t{kJumpBytes} || *jump != kJump) return std::nullopt;
  int32_t distance = 0;
  std::memcpy(&distance, &*jump + 1, sizeof(distance));
  const uint64_t behind = function + static_cast<uint64_t>(jump - there.begin()) + kJumpBytes;
  return behind + static_cast<uint64_t>(int64_t{distance}) - kFindingPlace;
}

tl::unexpected<Error> answers_otherwise(pid_t pid) {
  return fail(ErrorCode::Refused,
              fmt::format("process {} answers its unwinders in another way [recorded]", pid));
}

// Up to the one that is all 0.
template <typename Row>
Expected<std::vector<Row>> read_rows(pid_t pid, uint64_t address, size_t count) {
  std::vector<uint8_t> bytes(count * sizeof(Row));
  CLEW_TRY(target::read_memory(pid, address, bytes));
  std::vector<Row> rows;
  for (size_t i = 0; i < count; ++i) {
    Row row;
    std::memcpy(&row, bytes.data() + i * sizeof(Row), sizeof(Row));
    const Row none;
    if (std::memcmp(&row, &none, sizeof(Row)) == 0) break;
    rows.push_back(row);
  }
  return rows;
}

// All of them again: what is there stays what it is. Who looks meanwhile finds all 0 behind the
// others, or the new one.
template <typename Row>
Expected<void> write_rows(Attachment& attachment, const CopyRoom& room,
                          const std::vector<Row>& rows) {
  std::vector<uint8_t> bytes(rows.size() * sizeof(Row));
  std::memcpy(bytes.data(), rows.data(), bytes.size());
  return attachment.write_copies(room, bytes);
}

}  // namespace

Expected<std::optional<Answers>> Answers::install(Attachment& attachment,
                                                  std::span<const target::ProcessModule> modules) {
  for (const target::ProcessModule& module : modules) {
    const auto finder = find_function(module, kFinder);
    if (!finder) continue;
    if (const auto before = room_before(attachment.pid(), *finder, module))
      return adopt(attachment, modules, *before);
    const CopyRoom room =
        CLEW_TRY(attachment.take_copy_room(module.executable_ranges.front().start,
                                           module.executable_ranges.back().end, kRoomBytes, 0));
    const AnsweringCode answering = CLEW_TRY(finding_code(*finder, module, room));
    CLEW_TRY(check_size(answering));
    std::vector<uint8_t> bytes(kFindingPlace);
    bytes.insert(bytes.end(), answering.bytes.begin(), answering.bytes.end());
    bytes.resize(kRoomBytes);
    CLEW_TRY(attachment.write_copies(room, bytes));
    CLEW_TRY(attachment.lead_to_copies({answering.window}, Attachment::Leads::ToAnswers));
    return std::optional(Answers(room));
  }
  return std::optional<Answers>();
}

// Whoever answers there is known by its bytes, and so is the jump to it.
Expected<std::optional<Answers>> Answers::adopt(Attachment& attachment,
                                                std::span<const target::ProcessModule> modules,
                                                uint64_t room_address) {
  const pid_t pid = attachment.pid();
  for (const target::ProcessModule& module : modules) {
    const auto finder = find_function(module, kFinder);
    if (!finder) continue;
    Answers answers(CLEW_TRY(attachment.room_at(room_address, kRoomBytes)));
    AnsweringCode answering = CLEW_TRY(finding_code(*finder, module, answers.room_));
    const bool is_ours = CLEW_TRY(is_there(attachment, room_address + kFindingPlace, answering));
    if (!is_ours) return answers_otherwise(pid);
    for (const AnswerRow& row : CLEW_TRY(read_rows<AnswerRow>(pid, room_address, kAnswersMax))) {
      const AnswerRow whole = row_of(row.answer);
      if (std::memcmp(&row, &whole, sizeof(row)) != 0) break;  // Who wrote it was killed.
      answers.table_.push_back(row.answer);
    }
    answers.askers_ = CLEW_TRY(read_rows<Asker>(pid, room_address + kAskersPlace, kAskersMax));
    CLEW_TRY(lead(attachment, std::move(answering)));
    if (!answers.askers_.empty()) CLEW_TRY(answers.listen(attachment, modules));
    return std::optional(std::move(answers));
  }
  return std::optional<Answers>();
}

// The table alone is written again, and nobody is yet in the copies that the new row is about.
Expected<void> Answers::add(Attachment& attachment, const Answer& answer) {
  const bool is_there = std::any_of(table_.begin(), table_.end(), [&](const Answer& one) {
    return std::memcmp(&one, &answer, sizeof(one)) == 0;
  });
  if (is_there) return {};  // The module has come back.
  if (table_.size() >= kAnswersMax) {
    return fail(ErrorCode::Limit, "too many modules have copies of their functions");
  }
  std::vector<AnswerRow> rows;
  rows.reserve(table_.size() + 1);
  for (const Answer& one : table_)
    rows.push_back(row_of(one));
  rows.push_back(row_of(answer));
  CLEW_TRY(write_rows(attachment, room_, rows));
  table_.push_back(answer);
  return {};
}

bool Answers::hears(const Asker& asker) const {
  return std::any_of(askers_.begin(), askers_.end(), [&](const Asker& one) {
    return one.begin == asker.begin && one.size_bytes == asker.size_bytes;
  });
}

Expected<void> Answers::hear(Attachment& attachment, std::span<const target::ProcessModule> modules,
                             const Asker& asker) {
  // Also of one that is known: what has come meanwhile may have such a function, too.
  CLEW_TRY(find_lister(modules));
  CLEW_TRY(hear_also(attachment, asker));
  return listens_ ? Expected<void>() : listen(attachment, modules);
}

Expected<void> Answers::hear_also(Attachment& attachment, const Asker& copies) {
  if (hears(copies)) return {};
  if (askers_.size() >= kAskersMax)
    return fail(ErrorCode::Limit, "too many modules of the process unwind [unwinding]");
  std::vector<Asker> askers = askers_;
  askers.push_back(copies);
  CLEW_TRY(write_rows(attachment, part_of(room_, kAskersPlace), askers));
  askers_ = std::move(askers);
  return {};
}

// The code is in the room from the first time on.
Expected<void> Answers::listen(Attachment& attachment,
                               std::span<const target::ProcessModule> modules) {
  const target::ProcessModule& module = *CLEW_TRY(find_lister(modules));
  const auto lister = find_function(module, kLister);
  if (!lister) {
    return fail(ErrorCode::Refused,
                fmt::format("{}() is not the C library's [unwinding]", kLister));
  }
  AnsweringCode listing = CLEW_TRY(listing_code(*lister, module, room_));
  CLEW_TRY(check_size(listing));
  if (is_led(attachment.pid(), listing.window)) {
    const bool is_ours = CLEW_TRY(is_there(attachment, room_.address + kListingPlace, listing));
    if (!is_ours) return answers_otherwise(attachment.pid());
  } else {
    CLEW_TRY(attachment.write_copies(part_of(room_, kListingPlace), listing.bytes));
  }
  CLEW_TRY(lead(attachment, std::move(listing)));
  listens_ = true;
  return {};
}

}  // namespace clew::inline_
