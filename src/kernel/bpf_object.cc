// SPDX-License-Identifier: Apache-2.0
#include "kernel/bpf_object.h"

#include <algorithm>
#include <cstring>

#include <linux/bpf.h>

#include "base/assert.h"
#include "isa/opcode.h"
#include "target/bpf_object.h"

extern "C" {
extern const uint8_t clew_d_accessors_begin[];
extern const uint8_t clew_d_accessors_end[];
extern const uint8_t clew_d_counted_begin[];
extern const uint8_t clew_d_counted_end[];
}

namespace clew::kernel {
namespace {

// Of an object that is our own and was checked when it was built.
class Reader {
 public:
  explicit Reader(const target::BpfObject& object) : object_(object) {}

  Functions read() {
    for (const target::BpfSymbol& symbol : object_.symbols()) {
      if (symbol.is_function) by_place_.emplace(symbol.value, function_of(symbol));
    }
    refer();
    resolve_local_calls();
    Functions functions;
    for (auto& [place, function] : by_place_)
      functions.emplace(function.name, std::move(function));
    return functions;
  }

 private:
  [[nodiscard]] Function function_of(const target::BpfSymbol& symbol) const {
    const std::span<const uint8_t> text = object_.sections()[symbol.section].bytes;
    CLEW_ASSERT(symbol.value + symbol.size_bytes <= text.size());
    Function function;
    function.name = symbol.name;
    function.parameters = parameters_of(symbol.name);
    function.is_main = symbol.name.starts_with("d_main_");
    function.is_callback = symbol.name.starts_with("d_callback_");
    function.code.resize(symbol.size_bytes / sizeof(isa::Instruction));
    std::memcpy(function.code.data(), text.data() + symbol.value, symbol.size_bytes);
    return function;
  }

  [[nodiscard]] uint32_t parameters_of(std::string_view name) const {
    const target::Btf& types = *object_.types();
    const target::BtfId function = types.find(target::BtfKind::Function, name);
    return static_cast<uint32_t>(types.parameters(types.at(function).target).size());
  }

  // The function that has the byte `place`: all stand in one section.
  [[nodiscard]] std::map<uint64_t, Function>::iterator function_at(uint64_t place) {
    auto found = by_place_.upper_bound(place);
    CLEW_ASSERT(found != by_place_.begin());
    return --found;
  }

  void refer() {
    for (const target::BpfRelocation& one : object_.relocations()) {
      const target::BpfSymbol& symbol = object_.symbols()[one.symbol];
      if (symbol.is_section || !object_.sections()[one.section].is_code()) continue;
      auto& [place, function] = *function_at(one.offset);
      const auto index = static_cast<uint32_t>((one.offset - place) / sizeof(isa::Instruction));
      const bool is_call = function.code[index].opcode == isa::kCallOpcode;
      function.references.push_back({index, is_call, std::string(symbol.name)});
    }
  }

  // The assembler resolves calls within a section itself.
  void resolve_local_calls() {
    for (auto& [place, function] : by_place_) {
      for (uint32_t i = 0; i < function.code.size(); ++i) {
        const isa::Instruction& one = function.code[i];
        if (one.opcode == isa::kLoad64Opcode) ++i;
        if (one.opcode != isa::kCallOpcode || one.source() != BPF_PSEUDO_CALL ||
            is_known(function, i))
          continue;
        const auto distance = static_cast<uint64_t>(int64_t{one.immediate});
        const auto callee = by_place_.find(place + (i + 1 + distance) * sizeof(isa::Instruction));
        CLEW_ASSERT(callee != by_place_.end());
        function.references.push_back({i, true, callee->second.name});
      }
    }
  }

  static bool is_known(const Function& function, uint32_t instruction) {
    return std::any_of(
        function.references.begin(), function.references.end(),
        [instruction](const isa::Reference& one) { return one.instruction == instruction; });
  }

  const target::BpfObject& object_;
  std::map<uint64_t, Function> by_place_;  // By the first byte in their section.
};

Functions built_in(const uint8_t* begin, const uint8_t* end) {
  const Expected<target::BpfObject> object =
      target::BpfObject::open({begin, end}, "the built-in accessors");
  CLEW_ASSERT(object.has_value() && object->types() != nullptr);
  return Reader(*object).read();
}

}  // namespace

const Functions& accessor_functions(LoopKind loops) {
  if (loops == LoopKind::Counted) {
    static const Functions kCounted = built_in(clew_d_counted_begin, clew_d_counted_end);
    return kCounted;
  }
  static const Functions kOpen = built_in(clew_d_accessors_begin, clew_d_accessors_end);
  return kOpen;
}

}  // namespace clew::kernel
