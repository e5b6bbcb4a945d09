// SPDX-License-Identifier: Apache-2.0
#include "recorder/python_calls.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "recorder/python_lines.h"
#include "recorder/python_text.h"

namespace clew::recorder {

namespace {

// Of kPythonExports.
constexpr size_t kCodeType = 0;
constexpr size_t kRuntime = 1;
constexpr size_t kVersion = 2;
constexpr size_t kTextType = 3;
constexpr size_t kBytesType = 4;
constexpr size_t kLoop = 5;
static_assert(kPythonExports.size() == kLoop + 1);

// Offsets of 3.11, x86-64, from its headers (Include/): internal/pycore_runtime.h, pycore_interp.h
// and pycore_frame.h, cpython/pystate.h and code.h, object.h, cpython/object.h,
// cpython/bytesobject.h.
constexpr uint64_t kRuntimeInterpreters = 40;
constexpr uint64_t kInterpreterNext = 0;
constexpr uint64_t kInterpreterThreads = 16;
constexpr uint64_t kInterpreterRuntime = 40;
constexpr uint64_t kThreadNext = 8;
constexpr uint64_t kThreadInterpreter = 16;
constexpr uint64_t kThreadLoopFrame = 56;  // cframe: of the loop that runs.
constexpr uint64_t kThreadNativeId = 160;
constexpr uint64_t kLoopFrameCurrent = 8;
constexpr uint64_t kObjectType = 8;
constexpr uint64_t kObjectSize = 16;
constexpr uint64_t kBytesBegin = 32;
constexpr uint64_t kCodeFirstLine = 72;
constexpr uint64_t kCodeFile = 112;
constexpr uint64_t kCodeName = 128;  // co_qualname.
constexpr uint64_t kCodeLines = 136;
constexpr uint64_t kCodeInstructions = 184;
constexpr uint64_t kTypeBasicSize = 32;
constexpr uint64_t kTypeItemSize = 40;

// _PyInterpreterFrame, without the locals.
struct PythonFrame {
  uint64_t function;
  uint64_t globals;
  uint64_t builtins;
  uint64_t locals;
  uint64_t code;
  uint64_t object;
  uint64_t previous;
  uint64_t instruction;  // The one that runs, or a cache of it.
  uint32_t stack_top;
  uint8_t is_entry;
  uint8_t owner;
  uint16_t padding;
};
static_assert(sizeof(PythonFrame) == 72);

constexpr uint64_t kUnitsMax = uint64_t{1} << 30;
constexpr uint64_t kLinesBytesMax = uint64_t{1} << 20;
constexpr size_t kInterpretersMax = 64;
constexpr size_t kThreadsMax = 10'000;
constexpr uint64_t kKnownVersion = 0x030b;

std::string python_name(std::optional<uint64_t> version) {
  if (!version) return "Python";
  return fmt::format("Python {}.{}.{}", *version >> 24 & 0xff, *version >> 16 & 0xff,
                     *version >> 8 & 0xff);
}

class PythonReader {
 public:
  PythonReader(const InterpreterAt& at, ScriptMemory& memory, Scripts& scripts)
      : at_(at),
        memory_(memory),
        text_(memory, at.places[kTextType]),
        scripts_(scripts),
        wanted_(at.threads.begin(), at.threads.end()) {}

  void read() {
    number_ = static_cast<uint32_t>(scripts_.interpreters.size());
    const auto version = at_.places[kVersion] == 0 ? std::nullopt : word(at_.places[kVersion]);
    scripts_.interpreters.push_back(
        {.name = python_name(version), .problem = problem(version), .loop = at_.places[kLoop]});
    if (!scripts_.interpreters.back().problem.empty()) return;
    uint64_t one = word(at_.places[kRuntime] + kRuntimeInterpreters).value_or(0);
    for (size_t i = 0; one != 0 && i < kInterpretersMax; ++i) {
      if (word(one + kInterpreterRuntime) != at_.places[kRuntime]) return;
      read_threads(one);
      one = word(one + kInterpreterNext).value_or(0);
    }
  }

 private:
  // A code object; without sense in it, nothing of it.
  struct Code {
    uint32_t function = 0;
    uint64_t bytes = 0;
    int32_t first_line = 0;
    PythonLines lines;
  };

  std::optional<uint64_t> word(uint64_t address) { return memory_.at<uint64_t>(address); }

  // Py_Version is there since 3.11 (cpython/pylifecycle.h).
  std::string problem(std::optional<uint64_t> version) {
    if (!version || *version >> 16 != kKnownVersion) return "only those of Python 3.11 are";
    const bool is_there = std::find(at_.places.begin(), at_.places.end(), 0) == at_.places.end();
    const bool is_known = is_there && has_layout(kCodeType, kCodeInstructions, kPythonUnitBytes) &&
                          has_layout(kBytesType, kBytesBegin + 1, 1) &&
                          has_layout(kTextType, PythonText::kObjectBytes, 0);
    return is_known ? "" : "its objects are not laid out as those of Python 3.11";
  }

  bool has_layout(size_t which, uint64_t basic_size, uint64_t item_size) {
    return word(at_.places[which] + kTypeBasicSize) == basic_size &&
           word(at_.places[which] + kTypeItemSize) == item_size;
  }

  void read_threads(uint64_t owner) {
    uint64_t one = word(owner + kInterpreterThreads).value_or(0);
    for (size_t i = 0; one != 0 && i < kThreadsMax; ++i) {
      if (word(one + kThreadInterpreter) != owner) return;
      const auto number = static_cast<int32_t>(word(one + kThreadNativeId).value_or(0));
      const uint64_t loop = word(one + kThreadLoopFrame).value_or(0);
      if (loop != 0 && wanted_.contains(number)) read_stack(number, loop);
      one = word(one + kThreadNext).value_or(0);
    }
  }

  void read_stack(int32_t number, uint64_t loop) {
    const auto first = word(loop + kLoopFrameCurrent);
    ScriptStack stack{.thread = number, .interpreter = number_, .calls = {}, .is_whole = false};
    std::unordered_set<uint64_t> seen;
    uint64_t at = first.value_or(1);
    for (; at != 0 && stack.calls.size() < kPythonCallsMax && calls_ < kAllPythonCallsMax;
         ++calls_) {
      const auto frame = memory_.at<PythonFrame>(at);
      const Code* const code = frame && seen.insert(at).second ? code_of(frame->code) : nullptr;
      const auto line =
          code == nullptr ? std::nullopt : line_of(*code, frame->instruction - frame->code);
      if (!line) break;
      stack.calls.push_back(
          {.function = code->function, .line = *line, .is_loops_first = frame->is_entry != 0});
      at = frame->previous;
    }
    stack.is_whole = at == 0;
    if (first != uint64_t{0}) scripts_.stacks.push_back(std::move(stack));
  }

  // Nothing where no instruction of the code is there. Behind its object, in bytes; in front of its
  // first instruction it has not begun.
  static std::optional<uint32_t> line_of(const Code& code, uint64_t behind) {
    const uint64_t offset = behind - kCodeInstructions;
    const bool has_begun = behind + kPythonUnitBytes != kCodeInstructions;
    if (!has_begun) return static_cast<uint32_t>(std::max(code.first_line, 0));
    if (offset % kPythonUnitBytes != 0 || offset >= code.bytes) return std::nullopt;
    return code.lines.at(offset);
  }

  // Null: there is none.
  const Code* code_of(uint64_t address) {
    const auto known = codes_.find(address);
    const auto& code = known != codes_.end()
                           ? known->second
                           : codes_.emplace(address, read_code(address)).first->second;
    return code ? &*code : nullptr;
  }

  std::optional<Code> read_code(uint64_t address) {
    if (word(address + kObjectType) != at_.places[kCodeType]) return std::nullopt;
    const auto units = word(address + kObjectSize);
    const auto first_line = memory_.at<int32_t>(address + kCodeFirstLine);
    const auto name = text_at(address + kCodeName);
    const auto file = text_at(address + kCodeFile);
    const auto lines = word(address + kCodeLines);
    if (!units || *units > kUnitsMax || !first_line || !name || !file || !lines)
      return std::nullopt;
    scripts_.functions.push_back({.name = *name, .file = *file});
    return Code{.function = static_cast<uint32_t>(scripts_.functions.size() - 1),
                .bytes = *units * kPythonUnitBytes,
                .first_line = *first_line,
                .lines = {bytes_at(*lines), *first_line}};
  }

  std::optional<std::string> text_at(uint64_t place) {
    const auto object = word(place);
    return object ? text_.read(*object) : std::nullopt;
  }

  // Of a bytes object; empty where it is none. What is behind the limit is left out.
  std::vector<uint8_t> bytes_at(uint64_t object) {
    if (word(object + kObjectType) != at_.places[kBytesType]) return {};
    std::vector<uint8_t> bytes(std::min(word(object + kObjectSize).value_or(0), kLinesBytesMax));
    if (!memory_.read(object + kBytesBegin, bytes)) bytes.clear();
    return bytes;
  }

  const InterpreterAt& at_;
  ScriptMemory& memory_;
  PythonText text_;
  Scripts& scripts_;
  std::unordered_set<int32_t> wanted_;
  std::unordered_map<uint64_t, std::optional<Code>> codes_;  // By address.
  uint32_t number_ = 0;                                      // In Scripts::interpreters.
  size_t calls_ = 0;
};

}  // namespace

void read_python_calls(const InterpreterAt& at, ScriptMemory& memory, Scripts& scripts) {
  PythonReader(at, memory, scripts).read();
}

}  // namespace clew::recorder
