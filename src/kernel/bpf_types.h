// SPDX-License-Identifier: Apache-2.0
// What a session in the kernel needs to know of the kernel's own types: where fields of its structs
// are, what arguments tracepoints and functions have. The types that a D program names are read
// elsewhere (providers).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "target/btf.h"

namespace clew::kernel {

inline constexpr std::string_view kTracepointPrefix = "btf_trace_";

// Offset in bytes of `path` ("se.sum_exec_runtime") in a struct; 0 when there is none.
uint64_t offset_in_record(const target::Btf& types, std::string_view record, std::string_view path);
// 0 when there is no such struct.
uint64_t bytes_of_record(const target::Btf& types, std::string_view record);

// A tracepoint's number among the types: the typedef btf_trace_<name>. NotFound: there is none, or
// it is one of a module.
Expected<target::BtfId> find_tracepoint(const target::Btf& types, std::string_view name);
// The parameters of its probe functions but the first, which is the tracer's own (void *__data).
std::vector<target::BtfParameter> tracepoint_parameters(const target::Btf& types,
                                                        target::BtfId tracepoint);

// The same with their names, which only the function has that calls all probes. Without it they
// have none.
std::vector<target::BtfParameter> named_tracepoint_parameters(const target::Btf& types,
                                                              std::string_view name,
                                                              target::BtfId tracepoint);

// A function of the kernel's core. NotFound.
struct FunctionType {
  target::BtfId id = target::kBtfVoid;
  uint32_t arguments = 0;
  bool has_result = false;
};
Expected<FunctionType> find_function(const target::Btf& types, std::string_view name);

}  // namespace clew::kernel
