// SPDX-License-Identifier: Apache-2.0
#include "inline/trampoline_check.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "abi/arena.h"
#include "code/decode.h"
#include "code/opcodes.h"
#include "runtime/blob.h"

namespace clew::inline_ {
namespace {

using abi::Register;
using code::kInt3;
using code::kJumpRel32;
using code::kNop;
using runtime::StubCall;

constexpr uint8_t kCall = 0xe8;
constexpr uint8_t kGroupFive = 0xff;
constexpr uint8_t kCallOfGroup = 2;  // ModRM.reg
constexpr uint8_t kJumpOfGroup = 4;

// An instruction of the window as the file has it.
struct Original {
  std::span<const uint8_t> bytes;
  code::Decoded decoded;
  uint64_t next = 0;  // Address behind it, load time.

  // Where its displacement leads; of a branch, or relative to rip.
  [[nodiscard]] uint64_t target() const {
    const bool has_field = decoded.rip_relative;
    const unsigned at = has_field ? decoded.displacement_offset : decoded.immediate_offset;
    const unsigned size = has_field ? decoded.displacement_size : decoded.immediate_size;
    return next + static_cast<uint64_t>(code::signed_field(bytes, at, size));
  }
};

// A jump out of line that was met, and where its code has to lead.
struct MetSlowPath {
  StubCall call;
  uint64_t code = 0;  // What the jump leads to.
  uint64_t run = 0;
  uint64_t skip = 0;
};

// A call's copy pushes the address behind the original and jumps.
bool goes_on(code::Flow flow) {
  return flow == code::Flow::Next || flow == code::Flow::Nop || flow == code::Flow::Conditional;
}

class Checker {
 public:
  Checker(const TrampolineRequest& request, const StubEnvironment& environment,
          std::span<const uint8_t> bytes)
      : request_(request), environment_(environment), bytes_(bytes) {}

  Expected<void> run() {
    const code::Window& window = *request_.window;
    const bool is_both = window.window_class == code::WindowClass::BothWays;
    if (is_both) {
      expect({0x0f, 0x82}, "jc behind");
      behind_ = read_target("jc behind");
    }
    if (window.kept_bytes != 0) head(std::span(window.original).first(window.kept_bytes));
    for (unsigned i = 0; i < window.instructions.size(); ++i) {
      before(i);
      copy(i);
      behind(i);
    }
    if (copied_ != window.size_bytes) wrong("a window that is not all copied");
    if (window.falls_through != goes_on_) wrong("where the window ends");
    if (window.falls_through) jump_to(load_address(window.size_bytes));
    for (uint32_t i = 0; i < abi::kCopyHeadBytes; ++i)
      expect({kInt3}, "room for a jump");
    if (is_both) way_behind();
    slow_paths();
    if (at_ != bytes_.size()) wrong("bytes behind the end");
    if (wrong_.empty()) return {};
    return fail(ErrorCode::Refused, fmt::format("the trampoline of {:#x} is wrong at byte {}: {}",
                                                load_address(0), wrong_at_, wrong_));
  }

 private:
  [[nodiscard]] uint64_t load_address(uint64_t offset) const {
    return request_.window->address + request_.load_bias + offset;
  }
  [[nodiscard]] uint64_t here() const { return request_.destination + at_; }
  [[nodiscard]] uint64_t stub_call(StubCall call) const {
    return environment_.blob_address + runtime::stub_call_offset(environment_.session, call);
  }

  // The first finding counts; what follows is read from anywhere.
  void wrong(std::string_view what) {
    if (!wrong_.empty()) return;
    wrong_ = what;
    wrong_at_ = at_;
  }

  // --- bytes
  std::span<const uint8_t> take(size_t size, std::string_view what) {
    if (!wrong_.empty() || size > bytes_.size() - at_) {
      wrong(what);
      return {};
    }
    at_ += size;
    return bytes_.subspan(at_ - size, size);
  }
  void expect(std::span<const uint8_t> wanted, std::string_view what) {
    const size_t begin = at_;
    const auto found = take(wanted.size(), what);
    if (std::equal(found.begin(), found.end(), wanted.begin(), wanted.end())) return;
    at_ = begin;
    wrong(what);
  }
  void expect(std::initializer_list<uint8_t> wanted, std::string_view what) {
    expect(std::span(wanted.begin(), wanted.size()), what);
  }
  void expect_word(uint32_t wanted, std::string_view what) {
    uint8_t bytes[sizeof wanted];
    std::memcpy(bytes, &wanted, sizeof wanted);
    expect(bytes, what);
  }
  uint64_t read_target(std::string_view what) {
    const auto field = take(4, what);
    return field.empty() ? 0 : here() + static_cast<uint64_t>(code::signed_field(field, 0, 4));
  }
  void expect_target(uint64_t wanted, std::string_view what) {
    if (read_target(what) != wanted) wrong(what);
  }
  [[nodiscard]] uint8_t peek() const { return at_ < bytes_.size() ? bytes_[at_] : kInt3; }

  void jump_to(uint64_t target) {
    expect({kJumpRel32}, "a jump");
    expect_target(target, "where a jump leads");
  }

  // --- probes
  [[nodiscard]] bool is_at(size_t point, unsigned instruction, code::Side side) const {
    const bool is_wanted = request_.left_out == nullptr || !(*request_.left_out)[point];
    const code::Point& one = request_.points[point];
    return is_wanted && one.instruction == instruction && one.side == side;
  }
  // The first of them, or null.
  [[nodiscard]] const code::Point* find_point(unsigned instruction, code::Side side) const {
    for (size_t i = 0; i < request_.points.size(); ++i) {
      if (is_at(i, instruction, side)) return &request_.points[i];
    }
    return nullptr;
  }
  // The nops that keep the heads of copies apart, the link to the layer below, the stubs.
  void before(unsigned instruction) {
    const bool has_link = (request_.lower_points >> instruction & 1) != 0;
    if (instruction == 1) second_ = here();
    if (!has_link && find_point(instruction, code::Side::Before) == nullptr) return;
    for (uint32_t i = 0; i + 1 < abi::kCopyHeadBytes && peek() == kNop; ++i)
      ++at_;
    if (has_link) {
      const auto link = link_bytes(here(), request_.lower_probes[instruction]);
      expect(link, "the link to the layer below");
    }
    stubs(instruction, code::Side::Before);
  }
  void stubs(unsigned instruction, code::Side side) {
    for (size_t i = 0; i < request_.points.size(); ++i) {
      if (!is_at(i, instruction, side)) continue;
      request_.loader_hook ? loader_stub() : stub(request_.points[i], request_.bodies[i]);
    }
  }
  void loader_stub() {
    expect({0x41, 0x52, kCall}, "the loader's hook");
    expect_target(stub_call(StubCall::Loader), "the loader's hook");
    expect({0x41, 0x5a}, "the loader's hook");
  }
  void head(std::span<const uint8_t> kept);
  void way_behind();
  void stub(const code::Point& point, const BodyShape& shape);
  void owner_check(MetSlowPath& path);
  void push_or_pop(const BodyShape& shape, bool is_push);
  void slow_paths();
  void slot_operand(uint32_t field) { expect_word(environment_.low_address + field, "the slot"); }

  // --- copies
  void copy(unsigned index);
  void copy_with_target(const Original& original, std::span<const uint8_t> bytes);
  void copy_conditional(unsigned index, const Original& original);
  void copy_count_jump(unsigned index, const Original& original);
  void copy_call(const Original& original);
  void over_taken(unsigned index, uint64_t target, uint64_t over);
  void taken(unsigned index, uint64_t target);
  void behind(unsigned index);
  void tail(const code::Point& point, uint64_t target);

  const TrampolineRequest& request_;
  const StubEnvironment& environment_;
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  uint32_t copied_ = 0;   // Bytes of the window.
  bool goes_on_ = false;  // Behind the last copy.
  std::string wrong_;
  size_t wrong_at_ = 0;
  std::vector<MetSlowPath> slow_paths_;
  uint64_t behind_ = 0;  // Where the thread goes on that has done the first instruction,
  uint64_t second_ = 0;  // and from there: in front of what belongs to the second.
};

// --- the template (trampoline.h)

// By its own reading: push r64, add or sub of an immediate, or nothing to be taken back.
void Checker::head(std::span<const uint8_t> kept) {
  if (kept.size() != request_.window->instructions.front().length) wrong("what stays");
  const bool is_extended = kept.size() == 2 && kept[0] == 0x41;
  if (kept.size() == 1U + is_extended && (kept.back() & 0xf8) == 0x50) {
    expect({0x48, 0x8d, 0xa4, 0x24, 8, 0, 0, 0}, "lea rsp");
    return;
  }
  const bool is_wide = kept.size() >= 4 && (kept[0] == 0x48 || kept[0] == 0x49);
  const bool is_group = is_wide && (kept[1] == 0x83 || kept[1] == 0x81);
  const unsigned operation = is_group ? kept[2] & 0xf8U : 0;  // With a register: mod is 3.
  const bool adds = operation == 0xc0;
  if (!adds && operation != 0xe8) return;
  const int64_t bytes = code::signed_field(kept, 3, kept[1] == 0x83 ? 1 : 4);
  if (bytes == 0) return;
  const unsigned number = kept[2] & 7U;
  expect({static_cast<uint8_t>(kept[0] == 0x49 ? 0x4d : 0x48), 0x8d,
          static_cast<uint8_t>(0x80 | number << 3 | number)},
         "lea");
  if (number == 4) expect({0x24}, "lea");
  expect_word(static_cast<uint32_t>(adds ? -bytes : bytes), "lea");
}

// For each probe at the first instruction a lost hit; then on to the second.
void Checker::way_behind() {
  const auto index = static_cast<uint32_t>(request_.window->instructions.size());
  if (behind_ != here() || index < 2) wrong("where jc leads");
  if ((request_.lower_points >> index & 1) != 0) {
    expect(link_bytes(here(), request_.lower_probes[index]), "the link to the layer below");
  }
  for (size_t i = 0; i < request_.points.size(); ++i) {
    const code::Point& point = request_.points[i];
    const bool is_entry = point.kind == code::PointKind::Entry && !point.keeps_flags;
    if (point.instruction == 0 && (!is_entry || point.side != code::Side::Before)) {
      wrong("a probe that cannot be at bytes that serve both ways");
    }
    if (!is_at(i, 0, code::Side::Before)) continue;
    MetSlowPath claim{.call = StubCall::Claim};
    expect({0x41, 0x52}, "push r10");
    owner_check(claim);
    claim.run = here();
    expect({0x65, 0x48, 0x83, 0x04, 0x25}, "add gs:[unreadable], 1");
    expect_word(environment_.unreadable_address, "add gs:[unreadable], 1");
    expect({0x01}, "add gs:[unreadable], 1");
    claim.skip = here();
    expect({0x41, 0x5a}, "pop r10");
    slow_paths_.push_back(claim);
  }
  jump_to(second_);
}

void Checker::owner_check(MetSlowPath& path) {
  if (environment_.owner_check == OwnerCheck::Claim) {
    expect({kJumpRel32}, "jmp claim");
    path.code = read_target("jmp claim");
    return;
  }
  if (environment_.owner_check == OwnerCheck::Instruction) {
    expect({0xf3, 0x49, 0x0f, 0xae, 0xc2}, "rdfsbase r10");
  } else {
    expect({0x64, 0x4c, 0x8b, 0x14, 0x25, 0, 0, 0, 0}, "mov r10, fs:[0]");
  }
  expect({0x4c, 0x03, 0x14, 0x25}, "add r10, [cookie]");
  expect_word(environment_.low_address + abi::kCookieOffset, "the cookie");
  expect({0x65, 0x4c, 0x3b, 0x14, 0x25}, "cmp r10, gs:[owner]");
  slot_operand(offsetof(abi::SlotControl, owner));
  expect({0x0f, 0x85}, "jne claim");
  path.code = read_target("jne claim");
}

void Checker::push_or_pop(const BodyShape& shape, bool is_push) {
  for (unsigned i = 0; i < 16; ++i) {
    const unsigned number = is_push ? i : 15 - i;
    const auto r = static_cast<Register>(number);
    if (r == Register::R10 || !shape.clobbers.has(r)) continue;
    if (r == abi::kSavedFlags) {
      expect({static_cast<uint8_t>(is_push ? 0x9c : 0x9d)}, "the saved flags");
      continue;
    }
    if (number >= 8) expect({0x41}, "a saved register");
    expect({static_cast<uint8_t>((is_push ? 0x50 : 0x58) + (number & 7))}, "a saved register");
  }
}

void Checker::stub(const code::Point& point, const BodyShape& shape) {
  const bool in_flight = point.kind == code::PointKind::Offset;
  const bool keeps_flags = shape.clobbers.has(abi::kSavedFlags);
  if (point.keeps_flags && !keeps_flags) wrong("flags that are not kept");
  MetSlowPath claim{.call = StubCall::Claim};
  MetSlowPath busy{.call = StubCall::Busy};
  if (in_flight) expect({0x48, 0x8d, 0x64, 0x24, 0x80, 0x9c, 0xfc}, "lea rsp ; pushfq ; cld");
  expect({0x41, 0x52}, "push r10");
  if (keeps_flags) {
    push_or_pop(shape, true);
    expect({0xfc}, "cld");
  }
  owner_check(claim);
  claim.run = here();
  if (shape.guarded) {
    expect({0x65, 0x48, 0x83, 0x3c, 0x25}, "cmp gs:[busy], 0");
    slot_operand(offsetof(abi::SlotControl, busy));
    expect({0x00, 0x0f, 0x85}, "jne busy");
    busy.code = read_target("jne busy");
    busy.run = here();
    expect({0x65, 0x48, 0x89, 0x24, 0x25}, "mov gs:[busy], rsp");
    slot_operand(offsetof(abi::SlotControl, busy));
  }
  if (!keeps_flags) push_or_pop(shape, true);
  (void)take(shape.size_bytes, "a body");
  if (!keeps_flags) push_or_pop(shape, false);
  if (shape.guarded) {
    expect({0x65, 0x48, 0xc7, 0x04, 0x25}, "mov gs:[busy], 0");
    slot_operand(offsetof(abi::SlotControl, busy));
    expect_word(0, "mov gs:[busy], 0");
  }
  if (request_.copy != 0) {
    expect({0x41, 0x5a}, "pop r10");
    jump_to(request_.copy);
  }
  claim.skip = busy.skip = here();
  if (keeps_flags) push_or_pop(shape, false);
  expect({0x41, 0x5a}, "pop r10");
  if (in_flight) {
    expect({0x9d, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0}, "popfq ; lea rsp");
  }
  slow_paths_.push_back(claim);
  if (shape.guarded) slow_paths_.push_back(busy);
}

void Checker::slow_paths() {
  for (const MetSlowPath& path : slow_paths_) {
    if (path.code != here()) wrong("where a stub's jump out of line leads");
    expect({kCall}, "a call of the runtime");
    expect_target(stub_call(path.call), "a call of the runtime");
    expect({0x0f, 0x85}, "jnz run");
    expect_target(path.run, "jnz run");
    jump_to(path.skip);
  }
}

// --- copies (relocate.h)

void Checker::copy(unsigned index) {
  const code::Displaced& displaced = request_.window->instructions[index];
  const auto bytes =
      std::span(request_.window->original).subspan(displaced.offset, displaced.length);
  const auto decoded = code::decode_with_zydis(bytes);
  if (!decoded || decoded->length != displaced.length || displaced.offset != copied_) {
    return wrong("no instruction to be copied");
  }
  copied_ += displaced.length;
  goes_on_ = goes_on(decoded->flow);
  const Original original{bytes, *decoded, load_address(displaced.offset + displaced.length)};
  switch (decoded->flow) {
    case code::Flow::Next:
    case code::Flow::Nop:
    case code::Flow::Return:
    case code::Flow::IndirectJump:
      if (decoded->rip_relative) return copy_with_target(original, bytes);
      return expect(bytes, "a copy");
    case code::Flow::Jump:
      return taken(index, original.target());
    case code::Flow::Conditional:
      return copy_conditional(index, original);
    case code::Flow::Call:
    case code::Flow::IndirectCall:
      return copy_call(original);
    case code::Flow::Int3:
    case code::Flow::Trap:
    case code::Flow::System:
    case code::Flow::Bad:
      return wrong("an instruction that is never displaced");
  }
}

// `bytes` but for the field, which leads to where the original's leads.
void Checker::copy_with_target(const Original& original, std::span<const uint8_t> bytes) {
  const unsigned field = original.decoded.displacement_offset;
  expect(bytes.first(field), "a copy");
  const auto found = take(4, "a copy's displacement");
  expect(bytes.subspan(field + 4), "a copy");
  if (found.empty()) return;
  const uint64_t target = here() + static_cast<uint64_t>(code::signed_field(found, 0, 4));
  if (target != original.target()) wrong("what a copy's displacement leads to");
}

void Checker::copy_conditional(unsigned index, const Original& original) {
  const uint8_t opcode = original.bytes[original.decoded.immediate_offset - 1U];
  constexpr uint8_t kFirstCount = 0xe0;  // loopne, loope, loop, jrcxz
  constexpr uint8_t kLastCount = 0xe3;
  const bool is_short = original.decoded.immediate_size == 1;
  if (is_short && opcode >= kFirstCount && opcode <= kLastCount) {
    return copy_count_jump(index, original);
  }
  const auto condition = static_cast<uint8_t>(0x80 | (opcode & 15));
  if (find_point(index, code::Side::Taken) == nullptr) {
    expect({0x0f, condition}, "a conditional jump");
    return expect_target(original.target(), "where a conditional jump leads");
  }
  expect({0x0f, static_cast<uint8_t>(condition ^ 1)}, "a conditional jump");
  const uint64_t over = read_target("a conditional jump");
  over_taken(index, original.target(), over);
}

void Checker::copy_count_jump(unsigned index, const Original& original) {
  expect(original.bytes.first(original.bytes.size() - 1), "a loop");
  expect({code::kJumpSizeBytes, kJumpRel32}, "a loop");
  const uint64_t over = read_target("a loop");
  over_taken(index, original.target(), over);
}

void Checker::over_taken(unsigned index, uint64_t target, uint64_t over) {
  taken(index, target);
  if (over != here()) wrong("the jump over what runs when a branch is taken");
}

// probe ; jmp target, or the tail that is there
void Checker::taken(unsigned index, uint64_t target) {
  const code::Point* const point = find_point(index, code::Side::Taken);
  if (point != nullptr && point->tail.size_bytes != 0) return tail(*point, target);
  stubs(index, code::Side::Taken);
  jump_to(target);
}

void Checker::behind(unsigned index) {
  const code::Point* const point = find_point(index, code::Side::Passed);
  if (point != nullptr && point->tail.size_bytes != 0) return tail(*point, load_address(copied_));
  stubs(index, code::Side::Passed);
}

// Instructions that are the same anywhere ; probe ; ret. That they are the text's is looked at when
// the process stands still.
void Checker::tail(const code::Point& point, uint64_t target) {
  const code::Tail& copied = point.tail;
  const auto bytes = std::span(copied.bytes).first(copied.size_bytes);
  if (point.tail_address() + request_.load_bias != target) wrong("where a tail is from");
  size_t at = 0;
  while (at < copied.ret_offset) {
    const auto one = code::decode_with_zydis(bytes.subspan(at));
    const bool is_plain = one && (one->flow == code::Flow::Next || one->flow == code::Flow::Nop) &&
                          !one->rip_relative;
    if (!is_plain) return wrong("an instruction of a tail");
    at += one->length;
  }
  const auto last = code::decode_with_zydis(bytes.subspan(at));
  const bool is_return = at == copied.ret_offset && last && last->flow == code::Flow::Return &&
                         at + last->length == bytes.size();
  if (!is_return) return wrong("the end of a tail");
  expect(bytes.first(at), "a tail");
  stubs(point.instruction, point.side);
  expect(bytes.subspan(at), "the end of a tail");
}

// push low ; mov dword [rsp + 4], high ; jmp
void Checker::copy_call(const Original& original) {
  expect({0x68}, "a return address");
  expect_word(static_cast<uint32_t>(original.next), "a return address");
  expect({0xc7, 0x44, 0x24, 0x04}, "a return address");
  expect_word(static_cast<uint32_t>(original.next >> 32), "a return address");
  if (original.decoded.flow == code::Flow::Call) return jump_to(original.target());
  std::vector<uint8_t> bytes(original.bytes.begin(), original.bytes.end());
  const auto opcode = std::find(bytes.begin(), bytes.end(), kGroupFive);
  if (bytes.end() - opcode < 2 || (opcode[1] >> 3 & 7) != kCallOfGroup) return wrong("a call");
  opcode[1] = static_cast<uint8_t>((opcode[1] & 0xc7) | kJumpOfGroup << 3);
  if (original.decoded.rip_relative) return copy_with_target(original, bytes);
  expect(bytes, "a call");
}

// By its own reading: test eax with the file's bytes, which ends behind the jump's first neighbour;
// a stc of what is left behind the first instruction; the jump.
bool serves_both(const TrampolineRequest& request, const code::Patch& patch) {
  const code::Window& window = *request.window;
  const std::span<const uint8_t> bytes(patch.replacement);
  const auto first = code::decode_with_zydis(window.original);
  const bool fits = first && first->flow == code::Flow::Next && first->length > 1 &&
                    first->length < code::kMarkSizeBytes && patch.size_bytes == 10 &&
                    patch.address == window.address + request.load_bias;
  if (!fits || bytes[0] != 0xa9 || bytes[4] != 0xf9 || bytes[5] != kJumpRel32) return false;
  for (unsigned i = 1; i < 4; ++i) {
    if (bytes[i] != (i < first->length ? window.original[i] : 0x66)) return false;
  }
  return patch.address + 10 + static_cast<uint64_t>(code::signed_field(bytes, 6, 4)) ==
         request.destination;
}

// The jump, or the hop's jump and the short one to the hop, or what serves both ways.
Expected<void> check_patches(const TrampolineRequest& request,
                             std::span<const code::Patch> patches) {
  const code::Window& window = *request.window;
  const bool has_hop = window.window_class == code::WindowClass::ShortJump;
  const auto leads = [&](const code::Patch& patch, uint64_t from, uint8_t opcode,
                         unsigned field_bytes, uint64_t to) {
    const unsigned size = 1 + field_bytes;
    const bool is_here = patch.address == from + request.load_bias && patch.size_bytes == size;
    const std::span<const uint8_t> bytes(patch.replacement);
    return is_here && bytes[0] == opcode &&
           patch.address + size +
                   static_cast<uint64_t>(code::signed_field(bytes, 1, field_bytes)) ==
               to;
  };
  const uint64_t hop = has_hop ? window.hop_address : window.jump_address();
  const bool is_both = window.window_class == code::WindowClass::BothWays;
  const bool is_right =
      is_both
          ? patches.size() == 1 && serves_both(request, patches[0])
          : patches.size() == (has_hop ? 2 : 1) &&
                leads(patches[0], hop, kJumpRel32, 4, request.destination) &&
                (!has_hop || leads(patches[1], window.address, 0xeb, 1, hop + request.load_bias));
  if (is_right) return {};
  return fail(ErrorCode::Refused, fmt::format("the jump at {:#x} leads to something else",
                                              window.address + request.load_bias));
}

}  // namespace

Expected<void> check_trampoline(const TrampolineRequest& request,
                                const StubEnvironment& environment, std::span<const uint8_t> bytes,
                                std::span<const code::Patch> patches) {
  CLEW_TRY(check_patches(request, patches));
  return Checker(request, environment, bytes).run();
}

}  // namespace clew::inline_
