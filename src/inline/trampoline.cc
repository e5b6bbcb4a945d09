// SPDX-License-Identifier: Apache-2.0
// Emits stubs. Instruction forms are few; each has its bytes beside its name.
#include "inline/trampoline.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <optional>

#include <fmt/format.h>

#include "abi/arena.h"
#include "base/assert.h"
#include "code/opcodes.h"
#include "runtime/blob.h"

namespace clew::inline_ {
namespace {

using abi::Register;
using code::kInt3;
using code::kNop;
using runtime::StubCall;

constexpr uint32_t kOwner = offsetof(abi::SlotControl, owner);
constexpr uint32_t kBusy = offsetof(abi::SlotControl, busy);

// A jump out of line, to be completed when the end of the trampoline is known.
struct SlowPath {
  uint32_t displacement_offset;  // Of the `jne`.
  StubCall call;
  uint32_t run_offset;   // Where to go on when the probe may run.
  uint32_t skip_offset;  // And when not.
};

class Writer {
 public:
  Writer(std::vector<uint8_t>& code, uint64_t origin) : code_(code), origin_(origin) {}

  [[nodiscard]] uint32_t offset() const { return static_cast<uint32_t>(code_.size() - base_); }
  void set_base(size_t base) { base_ = base; }
  void bytes(std::initializer_list<uint8_t> values) {
    code_.insert(code_.end(), values.begin(), values.end());
  }
  void word(uint32_t value) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      code_.push_back(static_cast<uint8_t>(value >> shift));
    }
  }
  void fill(size_t count, uint8_t value) { code_.insert(code_.end(), count, value); }
  // A rel32 field at the end of `code` that reaches `target`.
  void relative(uint64_t target) { word(static_cast<uint32_t>(target - (address() + 4))); }
  [[nodiscard]] uint64_t address() const { return origin_ + offset(); }
  void set_word(uint32_t offset, uint32_t value) {
    std::memcpy(code_.data() + base_ + offset, &value, sizeof value);
  }
  void push(Register r) { one_byte(0x50, r); }
  void pop(Register r) { one_byte(0x58, r); }
  void save(const BodyShape& shape) {
    for (unsigned n = 0; n < 16; ++n) {
      const auto r = static_cast<Register>(n);
      if (r == Register::R10 || !shape.clobbers.has(r)) continue;
      r == abi::kSavedFlags ? bytes({0x9c}) : push(r);
    }
  }
  void restore(const BodyShape& shape) {
    for (unsigned n = 16; n-- > 0;) {
      const auto r = static_cast<Register>(n);
      if (r == Register::R10 || !shape.clobbers.has(r)) continue;
      r == abi::kSavedFlags ? bytes({0x9d}) : pop(r);
    }
  }

 private:
  void one_byte(uint8_t opcode, Register r) {
    const auto number = static_cast<uint8_t>(r);
    if (number >= 8) code_.push_back(0x41);
    code_.push_back(static_cast<uint8_t>(opcode + (number & 7)));
  }

  std::vector<uint8_t>& code_;
  uint64_t origin_;
  size_t base_ = 0;
};

class Builder {
 public:
  Builder(const TrampolineRequest& request, const StubEnvironment& environment)
      : request_(request), environment_(environment) {
    result_.body_offsets.resize(request.points.size());
    result_.bodies.assign(request.bodies.begin(), request.bodies.end());
  }

  Expected<Trampoline> build();

 private:
  Expected<void> emit(std::span<const code::Point> points, uint64_t address,
                      std::vector<uint8_t>& code);
  [[nodiscard]] bool has_probe(unsigned instruction) const;
  void emit_padding(Writer& out, uint8_t instruction);
  void emit_link(Writer& out, uint8_t instruction);
  void emit_stub(Writer& out, const code::Point& point, size_t index);
  void emit_way_to_copy(Writer& out);
  void emit_loader_stub(Writer& out);
  Expected<void> emit_way_behind(uint64_t second);
  void emit_loss(Writer& out);
  uint32_t emit_owner_check(Writer& out);
  uint32_t emit_busy_check(Writer& out);
  void emit_slow_paths();
  Expected<void> describe(const code::Relocated& relocated);
  [[nodiscard]] uint64_t stub_call(StubCall call) const {
    return environment_.blob_address + runtime::stub_call_offset(environment_.session, call);
  }
  [[nodiscard]] std::optional<size_t> index_of(const code::Point& point) const;

  const TrampolineRequest& request_;
  const StubEnvironment& environment_;
  Trampoline result_;
  std::vector<SlowPath> slow_paths_;
  uint32_t probe_offsets_[abi::kWindowInstructionsMax] = {};
};

// Nothing stands behind the probe that would be passed by.
bool leads_to_copy(const TrampolineRequest& request) {
  if (request.points.size() != 1 || request.loader_hook || request.lower_points != 0) return false;
  const code::Point& point = request.points.front();
  return point.kind == code::PointKind::Entry && point.side == code::Side::Before &&
         !request.bodies.front().clobbers.has(abi::kSavedFlags) &&
         request.window->window_class != code::WindowClass::BothWays;
}

// Points that stand for a link slot only have this request number.
constexpr uint32_t kLinkOnly = UINT32_MAX;

Expected<Trampoline> Builder::build() {
  const code::Window& window = *request_.window;
  const bool is_both = window.window_class == code::WindowClass::BothWays;
  if (is_both && window.instructions.size() < 2) {
    return fail(ErrorCode::Refused, "the window has no second instruction");
  }
  if (window.instructions.size() + (is_both ? 1 : 0) > abi::kWindowInstructionsMax) {
    return fail(ErrorCode::Limit, "the window has too many instructions");
  }
  CLEW_ASSERT(request_.copy == 0 || leads_to_copy(request_));
  std::vector<code::Point> points;
  for (size_t i = 0; i < request_.points.size(); ++i) {
    if (request_.left_out == nullptr || !(*request_.left_out)[i]) {
      points.push_back(request_.points[i]);
    }
  }
  for (size_t i = 0; i < window.instructions.size(); ++i) {
    const bool linked = (request_.lower_points >> i & 1) != 0;
    const auto here = [&](const code::Point& p) {
      return p.instruction == i && p.side == code::Side::Before;
    };
    if (!linked || std::any_of(points.begin(), points.end(), here)) continue;
    const auto later = [&](const code::Point& p) { return p.instruction > i; };
    points.insert(std::find_if(points.begin(), points.end(), later),
                  {.instruction = static_cast<uint8_t>(i), .request = kLinkOnly});
  }
  const code::ProbeEmitter emitter = [&](std::span<const code::Point> group, uint64_t address,
                                         std::vector<uint8_t>& code) {
    return emit(group, address, code);
  };
  code::Relocated relocated = CLEW_TRY(
      relocate(window, points,
               {.destination = request_.destination, .load_bias = request_.load_bias}, emitter));
  result_.bytes = std::move(relocated.bytes);
  result_.patches = std::move(relocated.patches);
  // The last copy may be one byte, and a layer above needs five there.
  result_.bytes.insert(result_.bytes.end(), abi::kCopyHeadBytes, kInt3);
  if (is_both) {
    CLEW_TRY(emit_way_behind(relocated.boundaries[1].probe_offset));
  }
  emit_slow_paths();
  CLEW_TRY(describe(relocated));
  return std::move(result_);
}

Expected<void> Builder::emit(std::span<const code::Point> points, uint64_t address,
                             std::vector<uint8_t>& code) {
  Writer out(code, request_.destination);
  // Offsets count from the trampoline's first byte, wherever `code` begins.
  const uint64_t offset = address - request_.destination;
  CLEW_ASSERT(offset <= code.size());
  out.set_base(code.size() - offset);
  const uint8_t instruction = points.front().instruction;
  if (points.front().side == code::Side::Before) {
    emit_padding(out, instruction);
    probe_offsets_[instruction] = out.offset();
    emit_link(out, instruction);
  } else {
    // Inside the copy: a layer above would cut it off.
    result_.layer.conditional |= 1U << instruction;
  }
  for (const code::Point& point : points) {
    if (point.request == kLinkOnly) continue;
    const auto index = index_of(point);
    CLEW_ASSERT(index.has_value());
    if (request_.loader_hook) {
      emit_loader_stub(out);
    } else {
      emit_stub(out, point, *index);
    }
  }
  return {};
}

// The relocator may pass copies of our points: they are told apart by everything they say.
std::optional<size_t> Builder::index_of(const code::Point& point) const {
  for (size_t i = 0; i < request_.points.size(); ++i) {
    const code::Point& other = request_.points[i];
    const bool same = other.instruction == point.instruction && other.kind == point.kind &&
                      other.side == point.side && other.request == point.request;
    if (same) return i;
  }
  return std::nullopt;
}

bool Builder::has_probe(unsigned instruction) const {
  const auto here = [&](const code::Point& p) { return p.instruction == instruction; };
  return (request_.lower_points >> instruction & 1) != 0 ||
         std::any_of(request_.points.begin(), request_.points.end(), here);
}

// A layer above writes a jump over the copy of an instruction that has a probe; it must not reach
// into the next probe. Copies are as long as what they are copies of, or longer.
void Builder::emit_padding(Writer& out, uint8_t instruction) {
  unsigned before = instruction;
  uint32_t length = 0;
  while (before > 0) {
    length += request_.window->instructions[--before].length;
    if (has_probe(before)) break;
  }
  const bool is_short = length < abi::kCopyHeadBytes && instruction != 0 && has_probe(before);
  if (is_short) out.fill(abi::kCopyHeadBytes - length, kNop);
}

void Builder::emit_link(Writer& out, uint8_t instruction) {
  if ((request_.lower_points >> instruction & 1) == 0) return;
  const uint64_t target = request_.lower_probes[instruction];
  for (const uint8_t byte : link_bytes(out.address(), target))
    out.bytes({byte});
  result_.layer.with_links |= 1U << instruction;
}

void Builder::emit_stub(Writer& out, const code::Point& point, size_t index) {
  const BodyShape& shape = request_.bodies[index];
  const bool in_flight = point.kind == code::PointKind::Offset;
  const bool keeps_flags = shape.clobbers.has(abi::kSavedFlags);
  if (in_flight) {
    out.bytes({0x48, 0x8d, 0x64, 0x24, 0x80});  // lea rsp, [rsp - 128]
    out.bytes({0x9c, 0xfc});                    // pushfq ; cld
  }
  out.push(Register::R10);
  if (keeps_flags) {
    out.save(shape);
    out.bytes({0xfc});  // cld
  }
  const uint32_t claim = emit_owner_check(out);
  const uint32_t run = out.offset();
  const uint32_t busy = shape.guarded ? emit_busy_check(out) : 0;
  const uint32_t free = out.offset();
  if (shape.guarded) {
    out.bytes({0x65, 0x48, 0x89, 0x24, 0x25});  // mov gs:[A + busy], rsp
    out.word(environment_.low_address + kBusy);
  }
  if (!keeps_flags) out.save(shape);
  result_.body_offsets[index] = out.offset();
  out.fill(shape.size_bytes, kInt3);
  if (!keeps_flags) out.restore(shape);
  if (shape.guarded) {
    out.bytes({0x65, 0x48, 0xc7, 0x04, 0x25});  // mov qword gs:[A + busy], 0
    out.word(environment_.low_address + kBusy);
    out.word(0);
  }
  if (request_.copy != 0) emit_way_to_copy(out);
  const uint32_t skip = out.offset();
  if (keeps_flags) out.restore(shape);
  out.pop(Register::R10);
  if (in_flight) {
    out.bytes({0x9d});                                            // popfq
    out.bytes({0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00});  // lea rsp, [rsp + 128]
  }
  slow_paths_.push_back({claim, StubCall::Claim, run, skip});
  if (shape.guarded) slow_paths_.push_back({busy, StubCall::Busy, free, skip});
}

// Who has no slot does not come there.
void Builder::emit_way_to_copy(Writer& out) {
  out.pop(Register::R10);
  result_.layer.copy_jump = out.offset();
  out.bytes({0xe9});  // jmp
  out.relative(request_.copy);
}

void Builder::emit_loader_stub(Writer& out) {
  out.push(Register::R10);
  out.bytes({0xe8});  // call runtime.loader
  out.relative(stub_call(StubCall::Loader));
  out.pop(Register::R10);
}

// Where a thread arrives that has done the first instruction. In the layer it is one more
// instruction, so that layers above and below have theirs.
Expected<void> Builder::emit_way_behind(uint64_t second) {
  const auto index = static_cast<uint8_t>(request_.window->instructions.size());
  Writer out(result_.bytes, request_.destination);
  out.set_word(code::kBehindField, out.offset() - (code::kBehindField + 4));
  probe_offsets_[index] = out.offset();
  emit_link(out, index);
  for (size_t i = 0; i < request_.points.size(); ++i) {
    const code::Point& point = request_.points[i];
    if (point.instruction != 0) continue;
    // Its probe would be passed by, and its flags are not the program's.
    if (point.side != code::Side::Before || point.kind != code::PointKind::Entry) {
      return fail(ErrorCode::Refused, "a probe that cannot be at bytes that serve both ways");
    }
    if (request_.left_out == nullptr || !(*request_.left_out)[i]) emit_loss(out);
  }
  abi::LayerInstruction& places = result_.layer.instructions[index];
  places = {.probe = probe_offsets_[index], .copy = out.offset()};
  if (places.probe != places.copy) result_.layer.with_points |= 1U << index;
  out.bytes({0xe9});  // jmp
  out.relative(request_.destination + second);
  std::memcpy(result_.layer.copy_head[index], result_.bytes.data() + places.copy,
              abi::kCopyHeadBytes);
  return {};
}

void Builder::emit_loss(Writer& out) {
  out.push(Register::R10);
  const uint32_t claim = emit_owner_check(out);
  const uint32_t run = out.offset();
  out.bytes({0x65, 0x48, 0x83, 0x04, 0x25});  // add qword gs:[missed_unreadable], 1
  out.word(environment_.unreadable_address);
  out.bytes({0x01});
  const uint32_t skip = out.offset();
  out.pop(Register::R10);
  slow_paths_.push_back({claim, StubCall::Claim, run, skip});
}

// Returns the offset of the jump's displacement.
uint32_t Builder::emit_owner_check(Writer& out) {
  switch (environment_.owner_check) {
    case OwnerCheck::SelfPointer:
      out.bytes({0x64, 0x4c, 0x8b, 0x14, 0x25});  // mov r10, fs:[0]
      out.word(0);
      break;
    case OwnerCheck::Instruction:
      out.bytes({0xf3, 0x49, 0x0f, 0xae, 0xc2});  // rdfsbase r10
      break;
    case OwnerCheck::Claim:
      break;
  }
  if (environment_.owner_check == OwnerCheck::Claim) {
    out.bytes({0xe9});  // jmp claim
  } else {
    out.bytes({0x4c, 0x03, 0x14, 0x25});  // add r10, [A + cookie]
    out.word(environment_.low_address + abi::kCookieOffset);
    out.bytes({0x65, 0x4c, 0x3b, 0x14, 0x25});  // cmp r10, gs:[A + owner]
    out.word(environment_.low_address + kOwner);
    out.bytes({0x0f, 0x85});  // jne claim
  }
  const uint32_t displacement = out.offset();
  out.word(0);
  return displacement;
}

uint32_t Builder::emit_busy_check(Writer& out) {
  out.bytes({0x65, 0x48, 0x83, 0x3c, 0x25});  // cmp qword gs:[A + busy], 0
  out.word(environment_.low_address + kBusy);
  out.bytes({0x00, 0x0f, 0x85});  // jne busy
  const uint32_t displacement = out.offset();
  out.word(0);
  return displacement;
}

void Builder::emit_slow_paths() {
  Writer out(result_.bytes, request_.destination);
  for (const SlowPath& path : slow_paths_) {
    out.set_word(path.displacement_offset, out.offset() - (path.displacement_offset + 4));
    out.bytes({0xe8});  // call
    out.relative(stub_call(path.call));
    out.bytes({0x0f, 0x85});  // jnz
    out.relative(request_.destination + path.run_offset);
    out.bytes({0xe9});  // jmp
    out.relative(request_.destination + path.skip_offset);
  }
}

Expected<void> Builder::describe(const code::Relocated& relocated) {
  const code::Window& window = *request_.window;
  abi::LayerRecord& layer = result_.layer;
  const size_t count = window.instructions.size();
  CLEW_ASSERT(relocated.boundaries.size() >= count);
  layer.address = request_.destination;
  layer.size_bytes = static_cast<uint32_t>(result_.bytes.size());
  for (size_t i = 0; i < count; ++i) {
    const code::Boundary& boundary = relocated.boundaries[i];
    const bool probed = probe_offsets_[i] != 0 || boundary.probe_offset != boundary.copy_offset;
    layer.instructions[i].copy = boundary.copy_offset;
    layer.instructions[i].probe = probed ? probe_offsets_[i] : boundary.copy_offset;
    if (probed) layer.with_points |= 1U << i;
    std::memcpy(layer.copy_head[i], result_.bytes.data() + boundary.copy_offset,
                abi::kCopyHeadBytes);
  }
  if (relocated.boundaries.size() > count)
    layer.back_offset = relocated.boundaries[count].copy_offset;
  if (result_.patches.size() > abi::kPatchesMax) {
    return fail(ErrorCode::Limit, "the window needs too many patches");
  }
  layer.patch_count = static_cast<uint32_t>(result_.patches.size());
  for (size_t i = 0; i < result_.patches.size(); ++i) {
    const code::Patch& patch = result_.patches[i];
    CLEW_ASSERT(patch.size_bytes <= abi::kPatchSizeMax);
    layer.patches[i].address = patch.address;
    layer.patches[i].size_bytes = patch.size_bytes;
    std::memcpy(layer.patches[i].original, patch.original.data(), patch.size_bytes);
    std::memcpy(layer.patches[i].written, patch.replacement.data(), patch.size_bytes);
  }
  return {};
}

}  // namespace

Expected<Trampoline> build_trampoline(const TrampolineRequest& request,
                                      const StubEnvironment& environment) {
  return Builder(request, environment).build();
}

std::array<uint8_t, kLinkSizeBytes> link_bytes(uint64_t address, uint64_t target) {
  std::array<uint8_t, kLinkSizeBytes> bytes = {0x0f, 0x1f, 0x44, 0x00, 0x00};
  if (target == 0) return bytes;
  bytes[0] = 0xe9;
  const auto displacement = static_cast<uint32_t>(target - (address + kLinkSizeBytes));
  std::memcpy(bytes.data() + 1, &displacement, sizeof displacement);
  return bytes;
}

}  // namespace clew::inline_
