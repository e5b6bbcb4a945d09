// SPDX-License-Identifier: Apache-2.0
// Functions and raw tracepoints of the kernel: their parameters, and the registers that the System
// V ABI passes them in (psABI 3.2.3), as BTF has them. The kernel passes no floating point.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "engine/kernel/event_types.h"
#include "kernel/bpf_types.h"
#include "target/kernel_symbols.h"

namespace clew::engine {
namespace {

using query::CKind;
using query::CType;
using query::TypeHandle;

constexpr uint32_t kRegisters = 6;
constexpr uint32_t kWordBytes = 8;
constexpr size_t kModulesMax = 255;  // A handle has 8 bits for them.

// Gives each parameter its register, or says why it has none.
class Registers {
 public:
  void place(query::Parameter& parameter, const CType& type) {
    const bool is_wide = type.kind == CKind::Record || type.kind == CKind::Integer;
    const uint64_t size_bytes = is_wide ? type.size_bytes : kWordBytes;
    const uint64_t words = std::max<uint64_t>(1, (size_bytes + kWordBytes - 1) / kWordBytes);
    if (words > 2) {
      parameter.refusal = "it is passed by value in memory";
    } else if (used_ + words > kRegisters) {
      parameter.refusal = "it is passed on the stack";
    } else {
      parameter.index = static_cast<uint16_t>(used_);
      used_ += words;
    }
  }

 private:
  uint64_t used_ = 0;
};

}  // namespace

Expected<uint32_t> EventTypes::module_number(std::string_view module) {
  if (module == target::kKernelModule) return 0;
  const target::Btf* own = CLEW_TRY(types_.module(module));
  auto known = std::find(modules_.begin(), modules_.end(), own);
  if (known == modules_.end()) {
    if (modules_.size() == kModulesMax) {
      return fail(ErrorCode::Limit, fmt::format("the types of module '{}' cannot be read", module));
    }
    known = modules_.insert(known, own);
  }
  return static_cast<uint32_t>(known - modules_.begin()) + 1;
}

const target::Btf& EventTypes::types_of(uint32_t module) {
  return module == 0 ? **types_.kernel() : *modules_[module - 1];
}

Expected<std::vector<EventTypes::Function>> EventTypes::functions_of(const query::Source& source) {
  const std::vector<uint32_t> probes = CLEW_TRY(catalogue_.match(
      {.provider = "fbt", .module = source.module, .function = source.function, .name = "entry"}));
  std::vector<Function> functions;
  functions.reserve(probes.size());
  for (const uint32_t id : probes) {
    const kernel::Probe& probe = *catalogue_.find(id);
    CLEW_TRY(types_.kernel());
    const uint32_t module = CLEW_TRY(module_number(probe.module));
    const target::Btf& btf = types_of(module);
    const target::BtfId function = btf.find(target::BtfKind::Function, probe.function);
    functions.push_back({module, btf.at(function).target});
  }
  if (functions.empty()) return fail(ErrorCode::NotFound, "no function of the kernel matches");
  return functions;
}

std::vector<query::Parameter> EventTypes::parameters_of(const Function& function) {
  std::vector<query::Parameter> parameters;
  Registers registers;
  for (const target::BtfParameter& one : types_of(function.module).parameters(function.prototype)) {
    query::Parameter parameter;
    parameter.name = one.name;
    parameter.type = handle_of(function.module, one.type);
    registers.place(parameter, describe(parameter.type));
    if (!parameter.name.empty()) parameters.push_back(std::move(parameter));
  }
  return parameters;
}

Expected<std::vector<query::Parameter>> EventTypes::function_parameters(
    const query::Source& source) {
  std::optional<std::vector<query::Parameter>> common;
  for (const Function& function : CLEW_TRY(functions_of(source))) {
    keep_common(common, parameters_of(function));
    if (common->empty()) break;
  }
  return *common;
}

// Each argument is a word (include/trace/bpf_probe.h).
Expected<std::vector<query::Parameter>> EventTypes::raw_parameters(const query::Source& source) {
  const std::string name = source.function.substr(query::kRawGroup.size());
  std::optional<std::vector<query::Parameter>> common;
  for (const uint32_t id : CLEW_TRY(catalogue_.match({.provider = "rawtp", .name = name}))) {
    const kernel::Probe& probe = *catalogue_.find(id);
    CLEW_TRY(types_.kernel());
    const uint32_t module = CLEW_TRY(module_number(probe.module));
    const target::Btf& btf = types_of(module);
    const target::BtfId type = CLEW_TRY(kernel::find_tracepoint(btf, probe.symbol));
    std::vector<query::Parameter> own;
    for (const auto& one : kernel::named_tracepoint_parameters(btf, probe.symbol, type)) {
      query::Parameter parameter;
      parameter.name = one.name;
      parameter.type = handle_of(module, one.type);
      parameter.index = static_cast<uint16_t>(own.size());
      if (own.size() >= kRegisters) parameter.refusal = "it is behind the sixth";
      own.push_back(std::move(parameter));
    }
    std::erase_if(own, [](const query::Parameter& one) { return one.name.empty(); });
    keep_common(common, std::move(own));
  }
  if (!common) return fail(ErrorCode::NotFound, "no tracepoint of the kernel matches");
  return *common;
}

// As AttachKind::CallMoves has them.
Expected<std::vector<query::Parameter>> EventTypes::moved_parameters(const query::Source& source) {
  CLEW_TRY(types_.kernel());
  const bool of_sockets = source.function.starts_with(query::kSocketGroup);
  struct Named {
    const char* name;
    const char* type;
  };
  const std::array<Named, kRegisters> all = {
      {{of_sockets ? "sk" : "pipe", of_sockets ? "struct sock *" : "struct pipe_inode_info *"},
       {"ret", "long int"},
       {"inode", "struct inode *"},
       {"unread", "long int"},
       {"third", "long int"},
       {"fourth", "long int"}}};
  std::vector<query::Parameter> parameters;
  for (const Named& each : all) {
    query::Parameter parameter;
    parameter.name = each.name;
    parameter.type = named_type(each.type);
    parameter.index = static_cast<uint16_t>(parameters.size());
    if (parameter.type == 0) return fail(ErrorCode::NotFound, "the kernel's types lack it");
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

Expected<TypeHandle> EventTypes::result_type(const query::Source& source) {
  std::optional<TypeHandle> result;
  for (const Function& function : CLEW_TRY(functions_of(source))) {
    const target::BtfType prototype = types_of(function.module).at(function.prototype);
    const TypeHandle own = handle_of(function.module, prototype.target);
    if (result && *result != own) {
      return fail(ErrorCode::NotFound, "the functions that match give results of different types");
    }
    result = own;
  }
  return *result;
}

}  // namespace clew::engine
