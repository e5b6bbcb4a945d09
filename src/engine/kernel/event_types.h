// SPDX-License-Identifier: Apache-2.0
// Answers the query checker's questions about the kernel's events: arguments of system calls and
// fields of tracepoints from tracefs; arguments of raw tracepoints, arguments and results of
// functions and all types from BTF (function_types.cc). Questions about sources in a process go to
// another TypeSource.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/providers/catalogue.h"
#include "kernel/trace_events.h"
#include "query/type_source.h"
#include "target/btf_files.h"

namespace clew::engine {

class EventTypes final : public query::TypeSource {
 public:
  // Borrows all; `processes` may be null. Casts know the kernel's types when `casts_to_kernel`.
  EventTypes(kernel::Catalogue& catalogue, kernel::TraceEvents& events,
             query::TypeSource* processes, bool casts_to_kernel)
      : catalogue_(catalogue),
        events_(events),
        processes_(processes),
        casts_to_kernel_(casts_to_kernel) {}

  Expected<std::vector<query::Parameter>> parameters(const query::Source& source) override;
  Expected<query::TypeHandle> return_type(const query::Source& source) override;
  query::TypeHandle find_type(std::string_view name) override;
  query::CType describe(query::TypeHandle type) override;
  std::vector<query::CMember> members(query::TypeHandle type) override;
  std::vector<query::Enumerator> enumerators(query::TypeHandle type) override;

 private:
  Expected<std::vector<query::Parameter>> event_parameters(const query::Source& source);
  Expected<std::vector<std::string>> formats_of(const query::Source& source);
  query::Parameter parameter_of(const kernel::TraceField& field, bool is_call);
  query::TypeHandle type_of(const kernel::TraceField& field);
  query::TypeHandle named_type(std::string_view name);
  query::TypeHandle made(query::CType type);
  [[nodiscard]] query::CType describe_kernel(query::TypeHandle type);

  // A function that a source matches: its prototype, among the types of its module.
  struct Function {
    uint32_t module = 0;
    target::BtfId prototype = target::kBtfVoid;
  };
  Expected<std::vector<Function>> functions_of(const query::Source& source);
  Expected<std::vector<query::Parameter>> function_parameters(const query::Source& source);
  Expected<std::vector<query::Parameter>> raw_parameters(const query::Source& source);
  Expected<std::vector<query::Parameter>> moved_parameters(const query::Source& source);
  std::vector<query::Parameter> parameters_of(const Function& function);
  Expected<query::TypeHandle> result_type(const query::Source& source);
  Expected<uint32_t> module_number(std::string_view module);
  // Of module 0, the kernel's own, or of one that module_number() gave.
  const target::Btf& types_of(uint32_t module);
  [[nodiscard]] query::TypeHandle handle_of(uint32_t module, target::BtfId type);

  kernel::Catalogue& catalogue_;
  kernel::TraceEvents& events_;
  query::TypeSource* processes_;
  bool casts_to_kernel_;
  target::BtfFiles types_;
  std::vector<const target::Btf*> modules_;  // Module n is [n - 1].
  std::vector<query::CType> made_;  // Types that BTF does not have: arrays, numbers by their size.
};

// Those parameters of several events on which all agree: nothing at first, then with each one's
// own.
void keep_common(std::optional<std::vector<query::Parameter>>& common,
                 std::vector<query::Parameter> own);

}  // namespace clew::engine
