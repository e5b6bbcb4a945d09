// SPDX-License-Identifier: Apache-2.0
#include "kernel/bpf_types.h"

#include <fmt/format.h>

namespace clew::kernel {

using target::Btf;
using target::BtfId;
using target::BtfKind;

uint64_t offset_in_record(const Btf& types, std::string_view record, std::string_view path) {
  const auto member = types.member(types.find(BtfKind::Struct, record), path);
  return member ? member->offset_bits / 8 : 0;
}

uint64_t bytes_of_record(const Btf& types, std::string_view record) {
  const BtfId found = types.find(BtfKind::Struct, record);
  return found == target::kBtfVoid ? 0 : types.at(found).size_bytes;
}

Expected<BtfId> find_tracepoint(const Btf& types, std::string_view name) {
  const BtfId found =
      types.find(BtfKind::Typedef, std::string(kTracepointPrefix) + std::string(name));
  if (found != target::kBtfVoid) return found;
  return fail(ErrorCode::NotFound, fmt::format("the kernel has no tracepoint {}", name));
}

// typedef void (*btf_trace_x)(void *, arguments…);
std::vector<target::BtfParameter> tracepoint_parameters(const Btf& types, BtfId tracepoint) {
  const BtfId pointer = types.strip(tracepoint);
  auto parameters = types.parameters(types.strip(types.at(pointer).target));
  if (!parameters.empty()) parameters.erase(parameters.begin());
  return parameters;
}

std::vector<target::BtfParameter> named_tracepoint_parameters(const Btf& types,
                                                              std::string_view name,
                                                              BtfId tracepoint) {
  auto parameters = tracepoint_parameters(types, tracepoint);
  // int __traceiter_x(void *__data, arguments…);
  const BtfId caller = types.find(BtfKind::Function, fmt::format("__traceiter_{}", name));
  if (caller == target::kBtfVoid) return parameters;
  auto named = types.parameters(types.at(caller).target);
  if (named.size() != parameters.size() + 1) return parameters;
  named.erase(named.begin());
  return named;
}

Expected<FunctionType> find_function(const Btf& types, std::string_view name) {
  const BtfId function = types.find(BtfKind::Function, name);
  if (function == target::kBtfVoid) {
    return fail(ErrorCode::NotFound, fmt::format("the kernel's types have no function {}", name));
  }
  const BtfId prototype = types.at(function).target;
  return FunctionType{function, static_cast<uint32_t>(types.parameters(prototype).size()),
                      types.at(prototype).target != target::kBtfVoid};
}

}  // namespace clew::kernel
