// SPDX-License-Identifier: Apache-2.0
#include "recorder/guard_probe.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "abi/recorder.h"
#include "code/flag_use.h"
#include "code/lost_jumps.h"
#include "code/windows.h"

namespace clew::recorder {

namespace {

class GuardProbeWriter {
 public:
  GuardProbeWriter(const RecordedModule& module, uint64_t load_bias)
      : calls_(module.guards()), recipe_(module.recipe()), load_bias_(load_bias) {}

  std::vector<uint8_t> run() {
    const uint64_t first = calls_.front().behind;
    const uint64_t count = calls_.back().behind - first + 1;
    put({0x50, 0x51});                    // push rax ; push rcx
    put({0x48, 0x8b, 0x44, 0x24, 0x10});  // mov rax, [rsp + 16]
    put({0x48, 0xb9});                    // mov rcx, …
    put_word(-(load_bias_ + first));
    put({0x48, 0x01, 0xc8});  // add rax, rcx
    put({0x48, 0x3d});        // cmp rax, …
    put_word(static_cast<uint32_t>(count));
    const size_t is_other = put_open({0x73});  // jae end
    put({0x48, 0x8d, 0x0d});                   // lea rcx, [rip + …]
    put_word(uint32_t{0});
    const size_t table = bytes_.size();
    put({0x8b, 0x0c, 0x81});                     // mov ecx, [rcx + 4 * rax]
    put({0x85, 0xc9});                           // test ecx, ecx
    const size_t is_none = put_open({0x74});     // jz end
    put_gs({0x65, 0x48, 0x8b, 0x04, 0x25});      // mov rax, gs:[cursor]
    put({0x66, 0x8d, 0x40, abi::kRecordBytes});  // lea ax, [rax + 4]
    put_gs({0x65, 0x48, 0x89, 0x04, 0x25});      // mov gs:[cursor], rax
    put({0x48, 0x89, 0x08});                     // mov [rax], rcx
    lead(is_other);
    lead(is_none);
    put({0x59, 0x58, 0xc3});  // pop rcx ; pop rax ; ret
    put_table(table, first, count);
    return std::move(bytes_);
  }

 private:
  void put(std::initializer_list<uint8_t> bytes) { bytes_.insert(bytes_.end(), bytes); }
  template <typename Word>
  void put_word(Word value) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(value));
    std::memcpy(bytes_.data() + at, &value, sizeof(value));
  }
  void put_gs(std::initializer_list<uint8_t> opcode) {
    put(opcode);
    put_word(recipe_.cursor);
  }
  // A short jump, to be led here later.
  size_t put_open(std::initializer_list<uint8_t> opcode) {
    put(opcode);
    put({0});
    return bytes_.size();
  }
  void lead(size_t end) { bytes_[end - 1] = static_cast<uint8_t>(bytes_.size() - end); }

  void put_table(size_t named_at, uint64_t first, uint64_t count) {
    constexpr size_t kAlignment = 64;
    const size_t table = (bytes_.size() + kAlignment - 1) / kAlignment * kAlignment;
    const auto distance = static_cast<uint32_t>(table - named_at);
    std::memcpy(bytes_.data() + named_at - sizeof(distance), &distance, sizeof(distance));
    bytes_.resize(table + count * sizeof(uint32_t));
    for (const GuardCall& call : calls_) {
      const uint32_t record = abi::dag_record(recipe_.first_id + call.dag);
      std::memcpy(bytes_.data() + table + (call.behind - first) * sizeof(record), &record,
                  sizeof(record));
    }
  }

  const std::vector<GuardCall>& calls_;
  const Recipe& recipe_;
  uint64_t load_bias_;
  std::vector<uint8_t> bytes_;
};

}  // namespace

Expected<EntryPlan> plan_guard_entries(const RecordedModule& module) {
  const code::ModuleCode& code = module.facts().code;
  std::vector<code::Request> requests;
  for (const uint64_t callback : module.callbacks()) {
    requests.push_back(
        {.kind = code::RequestKind::Entry, .address = callback, .reads = code::kReadsNothing});
  }
  code::Plan windows = code::plan_windows(code, requests, {}, code::LateUprobeDanger::Refused);
  EntryPlan plan;
  for (size_t i = 0; i < windows.windows.size(); ++i) {
    const auto points = windows.points_of(static_cast<uint32_t>(i));
    const bool keeps_flags =
        std::any_of(points.begin(), points.end(), [](const auto& one) { return one.keeps_flags; });
    if (keeps_flags || !code::can_be_found(code, windows.windows[i])) continue;
    PlannedEntry entry;
    entry.window = std::move(windows.windows[i]);
    plan.entries.push_back(std::move(entry));
  }
  if (plan.entries.size() == requests.size()) return plan;
  return fail(ErrorCode::Refused, "no jump can stand at its guards' callback [guards]");
}

std::vector<uint8_t> guard_probe(const RecordedModule& module, uint64_t load_bias) {
  return GuardProbeWriter(module, load_bias).run();
}

}  // namespace clew::recorder
