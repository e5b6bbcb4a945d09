// SPDX-License-Identifier: Apache-2.0
// Built-in variables and subroutines.
#include <limits>

#include "plan/d/clause_coder.h"
#include "plan/d/one_of.h"

namespace clew::plan::d {

using abi::MachineAccessor;
using query::d::Builtin;
using query::d::NodeKind;
using query::d::Storage;
using query::d::Subroutine;

namespace {

constexpr Register kArgumentRegisters[] = {Register::R2, Register::R3, Register::R4, Register::R5};
constexpr uint32_t kArgumentsMax = 4;

// A subroutine that is one call: strings as offsets, numbers and addresses as they are.
struct Row {
  Subroutine subroutine;
  MachineAccessor accessor;
  bool has_destination;  // r2 = a temporary string; the arguments follow.
};

constexpr Row kRows[] = {
    {Subroutine::Basename, MachineAccessor::BaseName, true},
    {Subroutine::Cleanpath, MachineAccessor::CleanPath, true},
    {Subroutine::DPath, MachineAccessor::DPath, true},
    {Subroutine::Dirname, MachineAccessor::DirectoryName, true},
    {Subroutine::InetNtoa, MachineAccessor::InetNtoa, true},
    {Subroutine::InetNtop, MachineAccessor::InetNtop, true},
    {Subroutine::Json, MachineAccessor::Json, true},
    {Subroutine::LinkNtop, MachineAccessor::LinkNtop, true},
    {Subroutine::Progenyof, MachineAccessor::Progenyof, false},
    {Subroutine::Rand, MachineAccessor::Random, false},
    {Subroutine::Speculation, MachineAccessor::Speculation, false},
    {Subroutine::Strchr, MachineAccessor::StringAt, true},
    {Subroutine::Strjoin, MachineAccessor::StringJoin, true},
    {Subroutine::Strlen, MachineAccessor::StringLength, false},
    {Subroutine::Strrchr, MachineAccessor::StringAtLast, true},
    {Subroutine::Strstr, MachineAccessor::StringFrom, true},
    {Subroutine::Strtok, MachineAccessor::Tokenize, true},
    {Subroutine::Tolower, MachineAccessor::ToLower, true},
    {Subroutine::Toupper, MachineAccessor::ToUpper, true},
    {Subroutine::Alloca, MachineAccessor::Alloca, false},
};

const Row* find_row(Subroutine subroutine) {
  for (const Row& row : kRows) {
    if (row.subroutine == subroutine) return &row;
  }
  return nullptr;
}

// Which arguments are strings; the others are numbers. A bit per argument.
uint32_t string_arguments(Subroutine subroutine) {
  if (is_one_of(subroutine, Subroutine::Basename, Subroutine::Cleanpath, Subroutine::Dirname,
                Subroutine::Strchr, Subroutine::Strlen, Subroutine::Strrchr, Subroutine::Tolower,
                Subroutine::Toupper, Subroutine::Substr, Subroutine::Strtoll)) {
    return 0b1;
  }
  const bool has_two =
      is_one_of(subroutine, Subroutine::Index, Subroutine::Json, Subroutine::Rindex,
                Subroutine::Strjoin, Subroutine::Strstr, Subroutine::Strtok);
  return has_two ? 0b11 : 0;
}

bool is_string_builtin(Builtin builtin) {
  return is_one_of(builtin, Builtin::Cwd, Builtin::Execargs, Builtin::Execname, Builtin::Probefunc,
                   Builtin::Probemod, Builtin::Probename, Builtin::Probeprov, Builtin::Root);
}

// htonl() and its kin: how many bits they turn; 0 for all others.
uint32_t swapped_bits(Subroutine subroutine) {
  if (is_one_of(subroutine, Subroutine::Htons, Subroutine::Ntohs)) return 16;
  if (is_one_of(subroutine, Subroutine::Htonl, Subroutine::Ntohl)) return 32;
  return is_one_of(subroutine, Subroutine::Htonll, Subroutine::Ntohll) ? 64 : 0;
}

// A subroutine whose last argument may be left out, and what it then is.
struct DefaultRow {
  Subroutine subroutine;
  MachineAccessor accessor;
  bool has_destination;
  uint32_t argument_count;
  int64_t missing;
};

constexpr DefaultRow kDefaultRows[] = {
    {Subroutine::Index, MachineAccessor::FindString, false, 3, std::numeric_limits<int64_t>::min()},
    {Subroutine::Rindex, MachineAccessor::FindLastString, false, 3,
     std::numeric_limits<int64_t>::min()},
    {Subroutine::Substr, MachineAccessor::Substring, true, 3, std::numeric_limits<int64_t>::max()},
    {Subroutine::Lltostr, MachineAccessor::NumberToString, true, 2, 0},
    {Subroutine::Strtoll, MachineAccessor::StringToNumber, false, 2, 10},
    {Subroutine::InetNtoa6, MachineAccessor::InetNtoa6, true, 2, 0},
};

}  // namespace

void ClauseCoder::builtin(const Node& node) {
  if (node.builtin == Builtin::Uregs && node.kind == NodeKind::Index) {
    value(node.operands[1]);
    code().move(Register::R2, Register::R0);
    return emit_.call_checked(MachineAccessor::UserRegister);
  }
  if (node.storage == Storage::Argument) {
    emit_.load_header(Register::R0,
                      static_cast<uint32_t>(offsetof(abi::MachineWindowHeader, arguments) +
                                            8 * std::min<uint64_t>(node.integer, 9)));
    return emit_.fit(Register::R0, node.type);
  }
  const Builtin which = node.builtin;
  if (which >= Builtin::Arg0 && which <= Builtin::Arg9) {
    const auto index = static_cast<uint32_t>(which) - static_cast<uint32_t>(Builtin::Arg0);
    return emit_.load_header(
        Register::R0,
        static_cast<uint32_t>(offsetof(abi::MachineWindowHeader, arguments)) + 8 * index);
  }
  emit_.argument(Register::R2, static_cast<uint32_t>(which));
  if (is_string_builtin(which)) {
    emit_.argument(Register::R3, string_temporary());
    return emit_.call_checked(MachineAccessor::BuiltinString);
  }
  emit_.call_checked(MachineAccessor::BuiltinInteger);
  emit_.fit(Register::R0, node.type);
}

// Evaluates all arguments, then loads them into r2… and calls.
void ClauseCoder::call_with(const Node& node, MachineAccessor accessor, bool has_destination) {
  const uint32_t strings = string_arguments(node.subroutine);
  std::vector<Slot> slots;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    if ((strings >> i & 1) != 0) {
      string_of(node.operands[i]);
    } else {
      value(node.operands[i]);
      if (class_of(types(), node.operands[i].type) == ValueClass::String) {
        convert(node.operands[i].type, types().integer(8, false));
      }
    }
    slots.push_back(emit_.push());
  }
  uint32_t next = has_destination ? 1 : 0;
  for (const Slot slot : slots) {
    if (next < kArgumentsMax) emit_.load(kArgumentRegisters[next++], slot);
  }
  if (has_destination) emit_.argument(Register::R2, string_temporary());
  emit_.call_checked(accessor);
  for (size_t i = 0; i < slots.size(); ++i) {
    emit_.release();
  }
}

void ClauseCoder::swap_bytes(const Node& node, uint32_t bits) {
  value(node.operands[0]);
  code().swap_bytes(Register::R0, bits);
}

// r0 is where bytes are to be written: a fault when that is not in scratch. Where they end is
// looked at when they are copied.
void ClauseCoder::check_scratch() {
  constexpr int kTagShift = 48;
  const isa::Label bad = code().label();
  const isa::Label fine = code().label();
  code().move(Register::R1, Register::R0).alu(isa::Alu::ShiftRight, Register::R1, kTagShift);
  code().jump_if(isa::Jump::NotEqual, Register::R1,
                 static_cast<int32_t>(abi::kMachineWindowTag >> kTagShift), bad);
  code()
      .load_constant(Register::R2, ~abi::kMachineWindowTagMask)
      .alu(isa::Alu::And, Register::R2, Register::R0);
  emit_.load_header(Register::R1, offsetof(abi::MachineWindowHeader, scratch_begin));
  code().jump_if(isa::Jump::GreaterOrEqual, Register::R2, Register::R1, fine).bind(bad);
  emit_.fail_with(abi::MachineFault::BadAddress, Register::R0);
  code().bind(fine);
}

// copyin(address, size), copyinstr(address[, size]), copyinto(address, size, destination),
// bcopy(source, destination, size).
void ClauseCoder::copy_in(const Node& node) {
  const auto& operands = node.operands;
  if (node.subroutine == Subroutine::Copyinstr) {
    value(operands[0]);
    const Slot address = emit_.push();
    if (operands.size() > 1) {
      value(operands[1]);
      code().move(Register::R4, Register::R0);
    } else {
      emit_.argument(Register::R4, storage_.string_size_bytes());
    }
    emit_.load(Register::R3, address);
    emit_.release();
    emit_.argument(Register::R2, string_temporary());
    emit_.argument(Register::R5, 1);
    return emit_.call_checked(MachineAccessor::ReadString);
  }
  const bool is_bcopy = node.subroutine == Subroutine::Bcopy;
  value(operands[0]);
  convert(operands[0].type, types().integer(8, false));
  const Slot source = emit_.push();
  value(operands[1]);
  const Slot second = emit_.push();  // bcopy(): where to; the others: how much.
  if (node.subroutine == Subroutine::Copyin) {
    // One byte more, a zero: stringof(copyin(p, n)) is how scripts read a text that has no end.
    code().move(Register::R2, Register::R0).alu(isa::Alu::Add, Register::R2, 1);
    emit_.call_checked(MachineAccessor::Alloca);
  } else {
    value(operands[2]);
  }
  const Slot third = emit_.push();
  const Slot destination = is_bcopy ? second : third;
  const Slot size = is_bcopy ? third : second;
  if (node.subroutine != Subroutine::Copyin) {
    emit_.load(Register::R0, destination);
    check_scratch();
  }
  emit_.load(Register::R2, destination);
  emit_.load(Register::R3, source);
  emit_.load(Register::R4, size);
  emit_.argument(Register::R5, is_bcopy ? 0 : 1);
  emit_.call_checked(MachineAccessor::Copy);
  emit_.load(Register::R0, destination);
  emit_.release();
  emit_.release();
  emit_.release();
}

void ClauseCoder::subroutine(const Node& node) {
  if (node.is_extension) return extension_call(node);
  constexpr int kMinorBits = 20;  // MINORBITS of include/linux/kdev_t.h
  const Subroutine which = node.subroutine;
  if (const uint32_t bits = swapped_bits(which); bits != 0) return swap_bytes(node, bits);
  if (is_one_of(which, Subroutine::Getmajor, Subroutine::Getminor)) {
    value(node.operands[0]);
    code().move(Register::R0, Register::R0, isa::Width::Bits32);
    if (which == Subroutine::Getmajor) {
      code().alu(isa::Alu::ShiftRight, Register::R0, kMinorBits);
    } else {
      code().alu(isa::Alu::And, Register::R0, (1 << kMinorBits) - 1);
    }
    return;
  }
  if (is_one_of(which, Subroutine::Bcopy, Subroutine::Copyin, Subroutine::Copyinstr,
                Subroutine::Copyinto)) {
    return copy_in(node);
  }
  for (const DefaultRow& row : kDefaultRows) {
    if (row.subroutine != which) continue;
    Node whole = node;
    if (whole.operands.size() < row.argument_count) {
      Node& filler = whole.operands.emplace_back();
      filler.type = types().integer(8, true);
      filler.integer = static_cast<uint64_t>(row.missing);
    }
    return call_with(whole, row.accessor, row.has_destination);
  }
  const Row* row = find_row(which);
  if (row == nullptr) {  // Of Solaris alone: the checker lets none pass.
    code().move(Register::R0, 0);
    return;
  }
  call_with(node, row->accessor, row->has_destination);
  if (!row->has_destination) emit_.fit(Register::R0, node.type);
}

}  // namespace clew::plan::d
