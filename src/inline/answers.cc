// SPDX-License-Identifier: Apache-2.0
#include "inline/answers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <string_view>

#include <fmt/format.h>

#include "code/windows.h"
#include "inline/attachment_state.h"
#include "target/exported_code.h"
#include "target/linked_names.h"

namespace clew::inline_ {

namespace {

constexpr std::string_view kFinder = "_dl_find_object";
constexpr size_t kTableBytes = (kAnswersMax + 1) * sizeof(Answer);
constexpr size_t kCodeBytesMax = 256;

constexpr uint64_t kSliceBytesMax = 4096;

class AnsweringWriter {
 public:
  AnsweringWriter(const code::Window& window, const AnsweringPlaces& places)
      : window_(window), places_(places) {}

  Expected<AnsweringCode> run() {
    const code::Placement placement = {.destination = places_.code, .load_bias = places_.load_bias};
    const code::Relocated patched = CLEW_TRY(code::relocate(window_, {}, placement, {}));
    // What takes back a first instruction that stays in front of the jump, and that is done again.
    const uint32_t head = patched.boundaries.front().probe_offset;
    result_.bytes.assign(patched.bytes.begin(), patched.bytes.begin() + head);
    const size_t none = put_search();
    const size_t call = put_answer();
    lead(none, result_.bytes.size());
    lead(call, result_.bytes.size());
    const code::Placement plain = {.destination = here() - head, .load_bias = places_.load_bias};
    code::Relocated original = CLEW_TRY(code::relocate(window_, {}, plain, {}));
    result_.bytes.insert(result_.bytes.end(), original.bytes.begin() + head, original.bytes.end());
    result_.window = {.window = window_,
                      .load_bias = places_.load_bias,
                      .patches = patched.patches,
                      .copy = plain.destination,
                      .boundaries = std::move(original.boundaries)};
    return std::move(result_);
  }

 private:
  [[nodiscard]] uint64_t here() const { return places_.code + result_.bytes.size(); }
  void put(std::initializer_list<uint8_t> bytes) {
    result_.bytes.insert(result_.bytes.end(), bytes);
  }
  // The end of a distance of 4 bytes that is led somewhere later.
  size_t put_open(std::initializer_list<uint8_t> opcode) {
    put(opcode);
    put({0, 0, 0, 0});
    return result_.bytes.size();
  }
  void lead(size_t end, size_t target) {
    const auto distance = static_cast<uint32_t>(target - end);
    std::memcpy(result_.bytes.data() + end - 4, &distance, sizeof(distance));
  }

  // rdi: the program counter, rsi: where the answer goes. Both stay; rax, rcx, rdx and the flags
  // are free in front of a function. Behind it rax is behind the answer that was found.
  size_t put_search() {
    const size_t table = put_open({0x48, 0x8d, 0x05});  // lea rax, [table]
    lead(table, places_.table - places_.code);
    const size_t next = result_.bytes.size();
    put({0x48, 0x8b, 0x48, offsetof(Answer, size_bytes)});  // next: mov rcx, [rax + size]
    put({0x48, 0x85, 0xc9});                                // test rcx, rcx
    const size_t none = put_open({0x0f, 0x84});             // jz plain
    put({0x48, 0x89, 0xfa});                                // mov rdx, rdi
    put({0x48, 0x2b, 0x10});                                // sub rdx, [rax + begin]
    put({0x48, 0x83, 0xc0, sizeof(Answer)});                // add rax, 32
    put({0x48, 0x39, 0xca});                                // cmp rdx, rcx
    lead(put_open({0x0f, 0x83}), next);                     // jae next
    return none;
  }

  static constexpr uint8_t back(size_t field) {
    return static_cast<uint8_t>(static_cast<int>(field) - static_cast<int>(sizeof(Answer)));
  }

  // struct dl_find_object (dlfcn.h): flags 8, map_start 8, map_end 8, link_map 8, eh_frame 8.
  size_t put_answer() {
    put({0x56});                                                  // push rsi
    put({0x50});                                                  // push rax
    put({0x48, 0x83, 0xec, 0x08});                                // sub rsp, 8
    put({0x48, 0x8b, 0x78, back(offsetof(Answer, original))});    // mov rdi, [rax + original]
    const size_t call = put_open({0xe8});                         // call plain
    put({0x48, 0x83, 0xc4, 0x08});                                // add rsp, 8
    put({0x59});                                                  // pop rcx
    put({0x5e});                                                  // pop rsi
    put({0x85, 0xc0});                                            // test eax, eax
    const size_t unknown = put_open({0x0f, 0x85});                // jnz end
    put({0x48, 0x8b, 0x51, back(offsetof(Answer, begin))});       // mov rdx, [rcx + begin]
    put({0x48, 0x89, 0x56, 8});                                   // mov [rsi + map_start], rdx
    put({0x48, 0x03, 0x51, back(offsetof(Answer, size_bytes))});  // add rdx, [rcx + size]
    put({0x48, 0x89, 0x56, 16});                                  // mov [rsi + map_end], rdx
    put({0x48, 0x8b, 0x51, back(offsetof(Answer, header))});      // mov rdx, [rcx + header]
    put({0x48, 0x89, 0x56, 32});                                  // mov [rsi + eh_frame], rdx
    lead(unknown, result_.bytes.size());
    put({0xc3});  // end: ret
    return call;
  }

  const code::Window& window_;
  const AnsweringPlaces& places_;
  AnsweringCode result_;
};

std::optional<code::Window> find_window(const code::ModuleCode& code, uint64_t function) {
  const code::Request request = {.kind = code::RequestKind::Entry, .address = function};
  code::Plan plan = code::plan_windows(code, std::span(&request, 1));
  if (plan.windows.size() != 1) return std::nullopt;
  code::Window& window = plan.windows.front();
  if (window.window_class == code::WindowClass::BothWays) return std::nullopt;
  return std::move(window);
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

// An unwinder that does not ask the function: of gcc before 12, or LLVM's.
bool asks_elsewhere(const target::ProcessModule& module) {
  constexpr std::array<std::string_view, 2> kUnwinders = {"libgcc_s.so", "libunwind"};
  if (!is_named(module, kUnwinders)) return false;
  const auto names = target::read_linked_names(module.open_path);
  return !names || std::none_of(names->imports.begin(), names->imports.end(),
                                [](const auto& slot) { return slot.symbol == kFinder; });
}

std::optional<target::ExportedCode> find_finder(const target::ProcessModule& module) {
  constexpr std::array<std::string_view, 2> kLibraries = {"libc.so", "ld-linux"};
  if (!is_named(module, kLibraries)) return std::nullopt;
  auto finder = target::read_exported_code(module.open_path, kFinder, kSliceBytesMax);
  return finder ? std::move(*finder) : std::nullopt;
}

Expected<AnsweringCode> code_of(const target::ExportedCode& finder,
                                const target::ProcessModule& module, const CopyRoom& room) {
  return make_answering_code(code::analyse(slice_of(finder)), {.function = finder.address,
                                                               .load_bias = module.load_bias,
                                                               .code = room.address + kTableBytes,
                                                               .table = room.address});
}

std::span<uint8_t> bytes_of(std::vector<Answer>& table) {
  return {reinterpret_cast<uint8_t*>(table.data()), table.size() * sizeof(Answer)};
}

bool is_led(pid_t pid, const code::LedWindow& window) {
  return std::all_of(window.patches.begin(), window.patches.end(), [pid](const code::Patch& patch) {
    return holds(pid, patch.address, std::span(patch.replacement).first(patch.size_bytes));
  });
}

}  // namespace

Expected<AnsweringCode> make_answering_code(const code::ModuleCode& code,
                                            const AnsweringPlaces& places) {
  const auto window = find_window(code, places.function);
  if (!window) {
    return fail(ErrorCode::Refused,
                fmt::format("{}() in the process's C library takes no jump [unwinding]", kFinder));
  }
  return AnsweringWriter(*window, places).run();
}

Expected<std::optional<Answers>> Answers::install(Attachment& attachment,
                                                  std::span<const target::ProcessModule> modules) {
  if (std::any_of(modules.begin(), modules.end(), asks_elsewhere)) return std::optional<Answers>();
  for (const target::ProcessModule& module : modules) {
    const auto finder = find_finder(module);
    if (!finder) continue;
    const CopyRoom room = CLEW_TRY(attachment.take_copy_room(module.executable_ranges.front().start,
                                                             module.executable_ranges.back().end,
                                                             kTableBytes + kCodeBytesMax, 0));
    const AnsweringCode answering = CLEW_TRY(code_of(*finder, module, room));
    std::vector<uint8_t> bytes(kTableBytes);
    bytes.insert(bytes.end(), answering.bytes.begin(), answering.bytes.end());
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
    const auto finder = find_finder(module);
    if (!finder) continue;
    Answers answers(CLEW_TRY(attachment.room_at(room_address, kTableBytes + kCodeBytesMax)));
    AnsweringCode answering = CLEW_TRY(code_of(*finder, module, answers.room_));
    std::vector<uint8_t> there(answering.bytes.size());
    CLEW_TRY(target::read_memory(pid, room_address + kTableBytes, there));
    if (there != answering.bytes) {
      return fail(ErrorCode::Refused,
                  fmt::format("process {} answers its unwinders in another way [recorded]", pid));
    }
    answers.table_.resize(kAnswersMax);
    CLEW_TRY(target::read_memory(pid, room_address, bytes_of(answers.table_)));
    const auto end = std::find_if(answers.table_.begin(), answers.table_.end(),
                                  [](const Answer& one) { return one.size_bytes == 0; });
    answers.table_.erase(end, answers.table_.end());
    if (is_led(pid, answering.window)) {
      attachment.leads_to_answers(std::move(answering.window));
    } else {
      CLEW_TRY(attachment.lead_to_copies({answering.window}, Attachment::Leads::ToAnswers));
    }
    return std::optional(std::move(answers));
  }
  return std::optional<Answers>();
}

// The table alone is written again: what is there already stays what it is, and nobody is yet in
// the copies that the new one is about. Who looks meanwhile finds all 0 behind the others, or the
// new one.
Expected<void> Answers::add(Attachment& attachment, const Answer& answer) {
  const bool is_there = std::any_of(table_.begin(), table_.end(), [&](const Answer& one) {
    return std::memcmp(&one, &answer, sizeof(one)) == 0;
  });
  if (is_there) return {};  // The module has come back.
  if (table_.size() >= kAnswersMax) {
    return fail(ErrorCode::Limit, "too many modules have copies of their functions");
  }
  std::vector<uint8_t> bytes(kTableBytes);
  std::memcpy(bytes.data(), table_.data(), table_.size() * sizeof(Answer));
  std::memcpy(bytes.data() + table_.size() * sizeof(Answer), &answer, sizeof(answer));
  CLEW_TRY(attachment.write_copies(room_, bytes));
  table_.push_back(answer);
  return {};
}

}  // namespace clew::inline_
