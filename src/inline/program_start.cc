// SPDX-License-Identifier: Apache-2.0
#include "inline/program_start.h"

#include <cerrno>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <sys/user.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "code/opcodes.h"
#include "inline/changed_text.h"
#include "inline/debug_registers.h"
#include "inline/loader.h"
#include "target/module_image.h"
#include "target/process.h"

namespace clew::inline_ {
namespace {

using code::kInt3;
constexpr unsigned kNoticesMax = 64;

bool read_byte(pid_t pid, uint64_t address, uint8_t& byte) {
  return target::read_memory(pid, address, std::span(&byte, 1)).has_value();
}

// The loader's hook for debuggers; 0 when it has none that can be found.
uint64_t find_notice(pid_t pid, uint64_t loader_base) {
  const auto maps = target::read_memory_map(pid);
  if (!maps) return 0;
  for (const target::Mapping& map : *maps) {
    if (!map.contains(loader_base)) continue;
    const auto image = target::ModuleImage::read(fmt::format("/proc/{}/root{}", pid, map.path));
    if (!image) return 0;
    for (const target::Function& function : image->functions()) {
      for (const target::FunctionName& name : function.names) {
        if (name.linkage == "_dl_debug_state") return loader_base + function.address;
      }
    }
  }
  return 0;
}

std::optional<uint8_t> byte_of_file(pid_t pid, uint64_t address) {
  const auto maps = target::read_memory_map(pid);
  if (!maps) return std::nullopt;
  for (const target::Mapping& map : *maps) {
    if (!map.contains(address)) continue;
    const FileDescriptor file = open_text_file(pid, map);
    const auto offset = static_cast<off_t>(map.file_offset + (address - map.start));
    uint8_t byte = 0;
    const bool is_read = file.valid() && pread(file.get(), &byte, 1, offset) == 1;
    return is_read ? std::optional(byte) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

bool RunTo::write_byte(uint8_t byte) const {
  errno = 0;
  const int64_t old = ptrace(PTRACE_PEEKTEXT, pid_, reinterpret_cast<void*>(address_), nullptr);
  if (errno != 0) return false;
  const uint64_t word = (static_cast<uint64_t>(old) & ~uint64_t{0xff}) | byte;
  return ptrace(PTRACE_POKETEXT, pid_, reinterpret_cast<void*>(address_),
                reinterpret_cast<void*>(word)) == 0;
}

Expected<bool> RunTo::begin() {
  way_ = Way::None;
  if (set_breakpoint(pid_, address_)) {
    way_ = Way::Register;
    return false;
  }
  const std::optional<uint8_t> old = byte_of_file(pid_, address_);
  uint8_t now = 0;
  const bool is_read = old && read_byte(pid_, address_, now);
  if (is_read && now == kInt3 && now != *old) {
    way_ = Way::Steps;
    return is_there();  // A static program is there as it begins.
  }
  if (!is_read || now != *old || !write_byte(kInt3)) {
    return fail(ErrorCode::Io, fmt::format("cannot stop the command at {:#x}", address_));
  }
  original_ = now;
  way_ = Way::Instruction;
  return false;
}

Expected<bool> RunTo::is_there() const {
  user_regs_struct registers = {};
  if (ptrace(PTRACE_GETREGS, pid_, nullptr, &registers) != 0) {
    return fail(ErrorCode::Io, fmt::format("cannot stop the command at {:#x}", address_));
  }
  return registers.rip == address_;
}

Expected<bool> RunTo::trapped() {
  if (way_ == Way::Steps) return is_there();
  user_regs_struct registers = {};
  const bool has_registers = ptrace(PTRACE_GETREGS, pid_, nullptr, &registers) == 0;
  const bool is_instruction = way_ == Way::Instruction;
  const bool is_ours = has_registers && registers.rip == address_ + (is_instruction ? 1 : 0);
  if (!is_ours) return fail(ErrorCode::Io, "the command stopped at an unexpected place");
  undo();
  registers.rip = address_;
  if (!is_instruction || ptrace(PTRACE_SETREGS, pid_, nullptr, &registers) == 0) return true;
  return fail(ErrorCode::Io, "the command stopped at an unexpected place");
}

void RunTo::undo() {
  if (way_ == Way::Register) (void)clear_breakpoint(pid_);
  if (way_ == Way::Instruction) (void)write_byte(original_);
  way_ = Way::None;
}

Expected<bool> ProgramStart::begin() {
  CLEW_TRY(target::check_is_64_bit(pid_));
  const AuxiliaryValues values = read_auxiliary(pid_).value_or(AuxiliaryValues{});
  notice_ = values.loader_base == 0 ? 0 : find_notice(pid_, values.loader_base);
  run_ = RunTo(pid_, notice_ == 0 ? values.entry : notice_);
  return run_.begin();
}

Expected<bool> ProgramStart::trapped() {
  if (steps_off_) {
    steps_off_ = false;
    return run_.begin();
  }
  if (!CLEW_TRY(run_.trapped())) return false;
  if (notice_ == 0) return true;
  const auto state = read_loader_state(pid_);
  if (state && state->consistent) return true;
  if (++notices_ == kNoticesMax) {
    return fail(ErrorCode::Io, "the command's loader did not finish in time");
  }
  steps_off_ = true;
  return false;
}

}  // namespace clew::inline_
