// SPDX-License-Identifier: Apache-2.0
// Object -> Extension, in three steps: the variables get their places in the state, the code of
// each function its references, and each function that can be called the code of those that it
// calls.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/nearest.h"
#include "extension/extension.h"
#include "isa/inline_calls.h"
#include "isa/opcode.h"
#include "isa/validator.h"
#include "target/bpf_object.h"

namespace clew::extension {
namespace {

using isa::Body;
using isa::Instruction;
using target::BpfObject;
using target::BtfId;
using target::BtfKind;
using target::BtfType;

constexpr uint8_t kCallRegisterOpcode = 0x8D;
constexpr uint32_t kStateAlignment = 64;
constexpr size_t kCallsDeepMax = 64;
constexpr isa::InlineLimits kLimits = {.calls_max = 4096, .frame_bytes_max = kFrameBytesMax};

// What an extension may ask of the world; the others keep the state of queries.
constexpr std::array kAccessors = {abi::Accessor::Time,           abi::Accessor::Cpu,
                                   abi::Accessor::BitLength,      abi::Accessor::DivideUnsigned,
                                   abi::Accessor::ModuloUnsigned, abi::Accessor::DivideSigned,
                                   abi::Accessor::ModuloSigned,   abi::Accessor::TryRead,
                                   abi::Accessor::TryReadString};

// A function of the file as it stands there.
struct Source {
  uint32_t symbol = 0;
  Body body;
};

// libgcc's names for arithmetic that BPF does not have: __adddf3, __floatsisf, …
bool is_floating_point(std::string_view name) {
  const auto has = [name](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  };
  return name.starts_with("__") && (has("sf") || has("df") || has("tf"));
}

// Of those that calls keep, one that the code does not name.
std::optional<uint8_t> unused_register(const std::vector<Instruction>& code) {
  for (uint8_t wanted = 6; wanted <= 9; ++wanted) {
    const bool is_used = std::any_of(code.begin(), code.end(), [wanted](const Instruction& one) {
      return one.destination() == wanted || one.source() == wanted;
    });
    if (!is_used) return wanted;
  }
  return std::nullopt;
}

// A function that never returns has no exit, and what its caller does behind it is reached from
// nowhere. So its last jump back is one that looks as if it could be passed:
//     rN = 1 ; if rN != 0 goto back ; r0 = 0 ; exit
void give_an_end(std::vector<Instruction>& code) {
  constexpr uint8_t kJumpIfNotEqual = 0x55;  // To a constant.
  constexpr uint8_t kMoveConstant = 0xb7;
  const bool returns = std::any_of(code.begin(), code.end(), [](const Instruction& one) {
    return one.opcode == isa::kExitOpcode;
  });
  const std::optional<uint8_t> unused = unused_register(code);
  if (returns || !unused || code.empty() || code.back().opcode != isa::kJumpOpcode) return;
  const auto back = static_cast<int16_t>(code.back().offset - 1);
  code.back() = {kMoveConstant, *unused, 0, 1};
  code.push_back({kJumpIfNotEqual, *unused, back, 0});
  code.push_back({kMoveConstant, 0, 0, 0});
  code.push_back({isa::kExitOpcode, 0, 0, 0});
}

class Reader {
 public:
  explicit Reader(const BpfObject& object) : object_(object) {}

  Expected<Extension> read() {
    CLEW_TRY(place_variables());
    CLEW_TRY(read_functions());
    CLEW_TRY(relocate());
    for (const auto& [name, source] : sources_)
      CLEW_TRY(resolve_calls(name));
    for (auto& [name, source] : sources_) {
      give_an_end(source.body.code);
      CLEW_TRY(check_body(source));
    }
    for (const auto& [name, source] : sources_)
      (void)CLEW_TRY(size_with_calls(name));
    for (const auto& [name, source] : sources_) {
      if (!object_.symbols()[source.symbol].is_global) continue;
      result_.functions.push_back(CLEW_TRY(finish(name, source)));
    }
    if (result_.functions.empty())
      return refuse(object_.name(), "no function that is not static, so nothing to call");
    return std::move(result_);
  }

 private:
  static tl::unexpected<Error> refuse(std::string_view place, std::string_view why) {
    return fail(ErrorCode::InvalidQuery, fmt::format("{}: error: {}", place, why));
  }
  [[nodiscard]] tl::unexpected<Error> refuse_at(const Source& source, size_t instruction,
                                                std::string_view why) const {
    const target::BpfSymbol& symbol = object_.symbols()[source.symbol];
    return refuse(object_.place_of(symbol.section, symbol.value + 8 * instruction), why);
  }

  Expected<void> place_variables();
  Expected<void> read_initial_words(const target::BpfSection& section, uint32_t at);
  Expected<void> read_functions();
  Expected<void> relocate();
  Expected<void> relocate_load(Source& source, size_t instruction, const target::BpfSymbol& symbol);
  Expected<void> refer(Source& source, size_t instruction, const target::BpfSymbol& symbol);
  [[nodiscard]] Expected<void> unknown(const Source& source, size_t instruction,
                                       std::string_view name) const;
  Expected<void> resolve_calls(const std::string& name);
  Expected<void> check_call(Source& source, size_t instruction);
  [[nodiscard]] Expected<void> check_body(const Source& source) const;
  Expected<size_t> size_with_calls(const std::string& name);
  [[nodiscard]] Expected<Function> finish(const std::string& name, const Source& source) const;
  [[nodiscard]] Function signature(const std::string& name) const;
  [[nodiscard]] std::optional<ValueType> value_type(BtfId type) const;
  Source* at(uint32_t section, uint64_t offset);

  const BpfObject& object_;
  Extension result_;
  std::map<uint32_t, uint32_t> places_;  // Of data sections, in the state.
  std::map<std::string, Source> sources_;
  std::map<std::pair<uint32_t, uint64_t>, std::string> names_;  // By section and place.
  std::vector<std::string> open_;        // Functions whose calls are being followed.
  std::map<std::string, size_t> sizes_;  // Of those that were: in instructions.
};

Expected<void> Reader::place_variables() {
  uint64_t next = 0;
  for (uint32_t i = 0; i < object_.sections().size(); ++i) {
    const target::BpfSection& section = object_.sections()[i];
    if (!section.is_data() || section.header.sh_size == 0) continue;
    const uint64_t alignment =
        std::bit_ceil(std::clamp<uint64_t>(section.header.sh_addralign, 8, kStateAlignment));
    next = (next + alignment - 1) / alignment * alignment;
    if (next + section.header.sh_size > kStateBytesMax || section.header.sh_size > kStateBytesMax) {
      return fail(ErrorCode::Limit, fmt::format("{}: more than {} MiB of variables for each thread",
                                                object_.name(), kStateBytesMax >> 20));
    }
    places_[i] = static_cast<uint32_t>(next);
    CLEW_TRY(read_initial_words(section, static_cast<uint32_t>(next)));
    next += section.header.sh_size;
  }
  result_.state_bytes = static_cast<uint32_t>((next + 7) / 8 * 8);
  return {};
}

Expected<void> Reader::read_initial_words(const target::BpfSection& section, uint32_t at) {
  for (size_t i = 0; i < section.bytes.size(); i += 8) {
    uint64_t value = 0;
    std::memcpy(&value, section.bytes.data() + i, std::min<size_t>(8, section.bytes.size() - i));
    if (value != 0) result_.initial_words.push_back({at + static_cast<uint32_t>(i), value});
  }
  if (result_.initial_words.size() <= kInitialWordsMax) return {};
  return fail(ErrorCode::Limit,
              fmt::format("{}: more than {} bytes of variables and constants that are not zero at "
                          "first; compute such a table when it is needed",
                          object_.name(), 8 * kInitialWordsMax));
}

Expected<void> Reader::read_functions() {
  for (uint32_t i = 0; i < object_.symbols().size(); ++i) {
    const target::BpfSymbol& symbol = object_.symbols()[i];
    if (!symbol.is_function || symbol.section >= object_.sections().size()) continue;
    const target::BpfSection& section = object_.sections()[symbol.section];
    if (!section.is_code()) continue;
    const bool inside = symbol.value <= section.bytes.size() &&
                        symbol.size_bytes <= section.bytes.size() - symbol.value;
    const bool whole = symbol.value % 8 == 0 && symbol.size_bytes % 8 == 0;
    if (!inside || !whole || symbol.size_bytes == 0)
      return refuse(object_.name(), fmt::format("the code of '{}' is broken", symbol.name));
    Source source{.symbol = i, .body = {}};
    source.body.code.resize(symbol.size_bytes / 8);
    std::memcpy(source.body.code.data(), section.bytes.data() + symbol.value, symbol.size_bytes);
    names_[{symbol.section, symbol.value}] = symbol.name;
    if (!sources_.emplace(symbol.name, std::move(source)).second)
      return refuse(object_.name(), fmt::format("two functions are called '{}'", symbol.name));
  }
  return {};
}

// The function that has the byte at `offset` of a section.
Source* Reader::at(uint32_t section, uint64_t offset) {
  auto found = names_.upper_bound({section, offset});
  if (found == names_.begin()) return nullptr;
  --found;
  Source& source = sources_.at(found->second);
  const target::BpfSymbol& symbol = object_.symbols()[source.symbol];
  const bool has = found->first.first == section && offset < symbol.value + symbol.size_bytes;
  return has ? &source : nullptr;
}

Expected<void> Reader::relocate() {
  for (const target::BpfRelocation& one : object_.relocations()) {
    const target::BpfSymbol& symbol = object_.symbols()[one.symbol];
    if (object_.sections()[one.section].is_data()) {
      return refuse(object_.name(), fmt::format("a variable or a table begins with the address of "
                                                "'{}'; addresses can only be taken in functions",
                                                symbol.name));
    }
    Source* source = at(one.section, one.offset);
    if (source == nullptr || one.offset % 8 != 0)
      return refuse(object_.name(), "a relocation that is in no function");
    const size_t instruction = (one.offset - object_.symbols()[source->symbol].value) / 8;
    if (one.type == target::kBpfRelocateLoad64) {
      CLEW_TRY(relocate_load(*source, instruction, symbol));
    } else if (one.type == target::kBpfRelocateCall) {
      CLEW_TRY(refer(*source, instruction, symbol));
    } else {
      return refuse_at(*source, instruction, "a relocation of an unknown kind");
    }
  }
  return {};
}

Expected<void> Reader::unknown(const Source& source, size_t instruction,
                               std::string_view name) const {
  if (is_floating_point(name)) {
    return refuse_at(source, instruction,
                     "floating point; extensions compute with integers (1/1000 of a unit, say)");
  }
  std::vector<std::string_view> known;
  known.reserve(sources_.size());
  for (const auto& [one, function] : sources_)
    known.push_back(one);
  const std::string near = nearest_name(name, known);
  return refuse_at(source, instruction,
                   fmt::format("'{}' is not defined in this file{}; an extension has no C library "
                               "(clew.h says what there is)",
                               name, did_you_mean(near)));
}

// LDDW of a variable's address: what is added to it is in the immediate.
Expected<void> Reader::relocate_load(Source& source, size_t instruction,
                                     const target::BpfSymbol& symbol) {
  std::vector<Instruction>& code = source.body.code;
  if (instruction + 1 >= code.size() || code[instruction].opcode != isa::kLoad64Opcode)
    return refuse_at(source, instruction, "a relocation of no load");
  if (symbol.section == SHN_UNDEF) return unknown(source, instruction, symbol.name);
  const auto place = places_.find(symbol.section);
  if (place == places_.end())
    return refuse_at(source, instruction, "a pointer to a function; extensions call by name only");
  if (symbol.value > kStateBytesMax)
    return refuse_at(source, instruction, "an address outside the variables");
  const int64_t offset = int64_t{place->second} + static_cast<int64_t>(symbol.value) +
                         int64_t{code[instruction].immediate};
  if (offset < 0 || offset > result_.state_bytes)
    return refuse_at(source, instruction, "an address outside the variables");
  const auto kind = static_cast<uint8_t>(isa::Load64::Window);
  code[instruction].registers = static_cast<uint8_t>(code[instruction].destination() | kind << 4);
  code[instruction].immediate = static_cast<int32_t>(offset);
  code[instruction + 1] = {};
  return {};
}

// A call across sections, or of what is not there.
Expected<void> Reader::refer(Source& source, size_t instruction, const target::BpfSymbol& symbol) {
  const std::vector<Instruction>& code = source.body.code;
  if (instruction >= code.size() || code[instruction].opcode != isa::kCallOpcode)
    return refuse_at(source, 0, "a relocation of no call");
  if (symbol.section == SHN_UNDEF) return unknown(source, instruction, symbol.name);
  const int64_t added =
      symbol.is_section ? 8 * (int64_t{source.body.code[instruction].immediate} + 1) : 0;
  const auto target = static_cast<uint64_t>(static_cast<int64_t>(symbol.value) + added);
  const auto name = names_.find({symbol.section, target});
  if (name == names_.end()) return refuse_at(source, instruction, "a call of no function");
  source.body.references.push_back({static_cast<uint32_t>(instruction), true, name->second});
  return {};
}

// Calls within a section have no relocation.
Expected<void> Reader::resolve_calls(const std::string& name) {
  Source& source = sources_.at(name);
  for (size_t i = 0; i < source.body.code.size(); ++i) {
    const Instruction& one = source.body.code[i];
    if (one.opcode == kCallRegisterOpcode)
      return refuse_at(source, i, "a call through a pointer; extensions call by name only");
    if (one.opcode == isa::kCallOpcode) CLEW_TRY(check_call(source, i));
    if (one.opcode != isa::kLoad64Opcode) continue;
    if (one.source() > static_cast<uint8_t>(isa::Load64::Window))
      return refuse_at(source, i, "a load of what only the kernel has");
    ++i;
  }
  return {};
}

Expected<void> Reader::check_call(Source& source, size_t instruction) {
  const Instruction& call = source.body.code[instruction];
  if (call.source() == static_cast<uint8_t>(isa::CallKind::Accessor)) {
    const auto accessor = static_cast<abi::Accessor>(call.immediate);
    const bool known =
        std::find(kAccessors.begin(), kAccessors.end(), accessor) != kAccessors.end();
    if (known) return {};
    return refuse_at(source, instruction,
                     fmt::format("no accessor {} for extensions", call.immediate));
  }
  const auto is_this = [instruction](const isa::Reference& one) {
    return one.instruction == instruction;
  };
  const std::vector<isa::Reference>& known = source.body.references;
  if (std::any_of(known.begin(), known.end(), is_this)) return {};
  const target::BpfSymbol& symbol = object_.symbols()[source.symbol];
  const int64_t distance = 8 * (static_cast<int64_t>(instruction) + 1 + call.immediate);
  const auto target = static_cast<uint64_t>(static_cast<int64_t>(symbol.value) + distance);
  const auto name = names_.find({symbol.section, target});
  if (name == names_.end()) return refuse_at(source, instruction, "a call of no function");
  source.body.references.push_back({static_cast<uint32_t>(instruction), true, name->second});
  return {};
}

// Whether it is a program at all, whatever its calls mean.
Expected<void> Reader::check_body(const Source& source) const {
  isa::Program program{.name = std::string(object_.symbols()[source.symbol].name),
                       .code = source.body.code};
  for (const isa::Reference& call : source.body.references)
    program.code[call.instruction] = {isa::kCallOpcode, 0, 0, 0};
  if (const auto valid = isa::validate(program); !valid)
    return refuse_at(source, 0, valid.error().message);
  return {};
}

// In instructions, with all that it calls; so recursion is found here.
Expected<size_t> Reader::size_with_calls(const std::string& name) {
  if (const auto known = sizes_.find(name); known != sizes_.end()) return known->second;
  open_.push_back(name);
  const Source& source = sources_.at(name);
  size_t size = source.body.code.size();
  for (const isa::Reference& call : source.body.references) {
    const bool is_open = std::find(open_.begin(), open_.end(), call.symbol) != open_.end();
    if (is_open || open_.size() > kCallsDeepMax) {
      return refuse_at(source, call.instruction,
                       fmt::format("{}: {} > {}", is_open ? "recursion" : "calls too deep",
                                   fmt::join(open_, " > "), call.symbol));
    }
    size += CLEW_TRY(size_with_calls(call.symbol));
    if (size > isa::kInstructionsMax) {
      return refuse_at(source, call.instruction,
                       fmt::format("'{}' with what it calls has more than {} instructions", name,
                                   isa::kInstructionsMax));
    }
  }
  open_.pop_back();
  sizes_.emplace(name, size);
  return size;
}

std::optional<ValueType> Reader::value_type(BtfId id) const {
  const BtfType type = object_.types()->at(object_.types()->strip(id));
  if (type.kind == BtfKind::Pointer) return ValueType{.is_pointer = true};
  const bool is_integer = type.kind == BtfKind::Integer || type.kind == BtfKind::Enum;
  if (!is_integer || type.size_bytes > 8 || !std::has_single_bit(type.size_bytes))
    return std::nullopt;
  return ValueType{.size_bytes = static_cast<uint8_t>(type.size_bytes),
                   .is_signed = type.is_signed,
                   .is_pointer = false};
}

Function Reader::signature(const std::string& name) const {
  Function result;
  result.name = name;
  const target::Btf* const known = object_.types();
  const BtfId function = known == nullptr ? target::kBtfVoid : known->find(BtfKind::Function, name);
  if (function == target::kBtfVoid) {
    result.refusal = "its type is not in the object; compile it with -g";
    return result;
  }
  const target::Btf& types = *known;
  const BtfId prototype = types.at(function).target;
  const std::optional<ValueType> value = value_type(types.at(prototype).target);
  if (value) result.result = *value;
  if (!value) result.refusal = "it gives no integer";
  if (types.at(prototype).is_variadic) result.refusal = "it takes any number of arguments";
  for (const target::BtfParameter& parameter : types.parameters(prototype)) {
    const std::optional<ValueType> type = value_type(parameter.type);
    if (!type) result.refusal = fmt::format("its parameter '{}' is no integer", parameter.name);
    result.parameters.push_back({std::string(parameter.name), type.value_or(ValueType{})});
  }
  if (result.parameters.size() > kParametersMax)
    result.refusal = fmt::format("it has more than {} parameters", kParametersMax);
  return result;
}

Expected<Function> Reader::finish(const std::string& name, const Source& source) const {
  Function result = signature(name);
  if (!result.refusal.empty()) return result;
  Body whole = isa::with_inlined_calls(
      source.body, [this](const std::string& callee) { return &sources_.at(callee).body; },
      [](std::string_view) { return true; }, kLimits);
  const std::optional<int32_t> frame = isa::frame_bytes(whole.code);
  if (!whole.references.empty() || !frame || *frame > static_cast<int32_t>(kFrameBytesMax)) {
    return refuse_at(source, 0,
                     fmt::format("'{}' with what it calls needs more than {} bytes of local "
                                 "variables, or is too long; use static ones",
                                 name, kFrameBytesMax));
  }
  isa::Program program{.name = name, .code = std::move(whole.code)};
  if (const auto valid = isa::validate(program); !valid)
    return refuse_at(source, 0, valid.error().message);
  for (size_t i = 0; i < program.code.size(); ++i) {
    const std::optional<int64_t> target = isa::branch_target(program.code, i);
    result.has_loops |= target && *target <= static_cast<int64_t>(i);
    if (program.code[i].opcode == isa::kLoad64Opcode) ++i;
  }
  result.code = std::move(program.code);
  return result;
}

}  // namespace

const Function* Extension::find(std::string_view function) const {
  const auto found = std::find_if(functions.begin(), functions.end(),
                                  [function](const Function& one) { return one.name == function; });
  return found == functions.end() ? nullptr : &*found;
}

Expected<Extension> read(std::span<const uint8_t> object, std::string name) {
  const BpfObject opened = CLEW_TRY(BpfObject::open(object, name));
  Extension result = CLEW_TRY(Reader(opened).read());
  result.name = std::move(name);
  return result;
}

}  // namespace clew::extension
