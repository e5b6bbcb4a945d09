// SPDX-License-Identifier: Apache-2.0
// The rules that every single window obeys.
#include "code/window_builder.h"

#include <algorithm>
#include <optional>

#include "code/displace.h"

namespace clew::code {

namespace {

using Refused = tl::unexpected<RefusalReason>;

unsigned overwritten_bytes(WindowClass window_class) {
  switch (window_class) {
    case WindowClass::OwnBytes:
    case WindowClass::OwnBytesAndPadding:
      return kJumpSizeBytes;
    case WindowClass::ShortJump:
      return kShortJumpSizeBytes;
    case WindowClass::BothWays:
      return kBothWaysSizeBytes;
  }
  return kJumpSizeBytes;
}

bool ends_window(Form form) {
  switch (form) {
    case Form::Jump:
    case Form::Call:
    case Form::IndirectCall:
    case Form::RipIndirectCall:
    case Form::Return:
    case Form::IndirectJump:
      return true;
    case Form::Plain:
    case Form::RipRelative:
    case Form::ConditionalJump:
    case Form::CountJump:
      return false;
  }
  return true;
}

bool is_call(Form form) {
  return form == Form::Call || form == Form::IndirectCall || form == Form::RipIndirectCall;
}

class Builder {
 public:
  Builder(const ModuleCode& code, const WindowWish& wish)
      : code_(code), wish_(wish), needed_(wish.kept_bytes + overwritten_bytes(wish.window_class)) {}

  tl::expected<Window, RefusalReason> run() {
    run_end_ = code_.run_end(wish_.start);
    if (run_end_ == wish_.start) {
      return Refused(code_.text_from(wish_.start).empty() ? RefusalReason::NotCode
                                                          : RefusalReason::NotAFunction);
    }
    window_.address = wish_.start;
    window_.window_class = wish_.window_class;
    window_.kept_bytes = wish_.kept_bytes;
    while (window_.size_bytes < needed_ || end() <= wish_.last) {
      if (!window_.falls_through) {
        if (end() <= wish_.last) return Refused(RefusalReason::BranchIntoWindow);
        break;
      }
      if (const auto reason = append()) return Refused(*reason);
    }
    if (const auto reason = check_room()) return Refused(*reason);
    const uint64_t last_byte = std::max<uint64_t>(end(), window_.address + needed_);
    if (code_.overlaps_rseq(window_.address, last_byte)) return Refused(RefusalReason::Rseq);
    const std::span<const uint8_t> text = code_.text_from(window_.address);
    std::copy_n(text.begin(), last_byte - window_.address, window_.original.begin());
    return std::move(window_);
  }

 private:
  [[nodiscard]] uint64_t end() const { return window_.address + window_.size_bytes; }

  std::optional<RefusalReason> append() {
    const std::optional<Instruction> instruction = code_.at(end());
    if (!instruction) return RefusalReason::NotAnInstruction;
    if (instruction->end() > run_end_) return RefusalReason::CrossesFunction;
    if (const auto reason = check_targets(*instruction)) return reason;
    const auto displaced = displace(code_, *instruction, window_.address);
    if (!displaced) return displaced.error();
    if (window_.size_bytes + displaced->length > static_cast<int>(kWindowSizeMax)) {
      return RefusalReason::TooShort;
    }
    window_.size_bytes = static_cast<uint8_t>(window_.size_bytes + displaced->length);
    window_.falls_through = !ends_window(displaced->form);
    window_.instructions.push_back(*displaced);
    return std::nullopt;
  }

  // Only the first byte of a window may be reached from elsewhere.
  [[nodiscard]] std::optional<RefusalReason> check_targets(const Instruction& instruction) const {
    for (uint64_t byte = instruction.address; byte < instruction.end(); ++byte) {
      if (byte == window_.address || !code_.is_target(byte)) continue;
      return byte == instruction.address ? RefusalReason::BranchIntoWindow
                                         : RefusalReason::DataInText;
    }
    return std::nullopt;
  }

  std::optional<RefusalReason> check_room() {
    if (window_.size_bytes >= needed_) {
      // The other classes are tried first, and cover this.
      return wish_.window_class == WindowClass::OwnBytesAndPadding
                 ? std::optional(RefusalReason::TooShort)
                 : std::nullopt;
    }
    // A call comes back to the byte behind it.
    if (is_call(window_.instructions.back().form)) return RefusalReason::BranchIntoWindow;
    const bool padded = wish_.window_class != WindowClass::OwnBytes &&
                        padding_end(code_, end()) >= window_.address + needed_;
    return padded ? std::nullopt : std::optional(RefusalReason::TooShort);
  }

  const ModuleCode& code_;
  const WindowWish& wish_;
  unsigned needed_;
  uint64_t run_end_ = 0;
  Window window_;
};

}  // namespace

tl::expected<Window, RefusalReason> build_window(const ModuleCode& code, const WindowWish& wish) {
  return Builder(code, wish).run();
}

uint64_t end_of(const Window& window) {
  const uint64_t overwritten = window.kept_bytes + overwritten_bytes(window.window_class);
  return window.address + std::max<uint64_t>(window.size_bytes, overwritten);
}

uint64_t earlier_start(const ModuleCode& code, uint64_t address) {
  const std::optional<Instruction> instruction = code.before(address);
  if (!instruction || code.is_target(address)) return 0;
  if (code.run_end(instruction->address) <= address) return 0;
  switch (instruction->flow) {
    case Flow::Next:
    case Flow::Nop:
    case Flow::Conditional:
      return instruction->address;
    case Flow::Int3:
    case Flow::IndirectCall:
    case Flow::IndirectJump:
    case Flow::Call:
    case Flow::Jump:
    case Flow::Return:
    case Flow::Trap:
    case Flow::System:
    case Flow::Bad:
      return 0;
  }
  return 0;
}

}  // namespace clew::code
