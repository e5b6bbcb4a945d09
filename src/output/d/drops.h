// SPDX-License-Identifier: Apache-2.0
// What a D script lost, and the faults of its clauses, in DTrace's words. Each line begins with
// "dtrace: " and ends with a newline, for stderr.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "abi/machine/window.h"
#include "output/d/record.h"

namespace clew::output::d {

enum class DropKind : uint8_t {
  Principal,    // By CPU.
  Aggregation,  // By CPU.
  Dynamic,
  DynamicRinse,
  DynamicDirty,
  Speculative,
  SpeculationBusy,
  SpeculationUnavailable,
  StackOverflow,
  ErrorInError,
  Nested,     // Not DTrace's: a probe fired inside too many others.
  Fuel,       // Nor this: a loop of an extension's function ended the firing.
  LeftAlone,  // Such a firing that was not begun.
};

struct Drop {
  DropKind kind = DropKind::Principal;
  uint64_t count = 0;
  uint32_t cpu = 0;
};

// `has_tags`: option droptags.
std::string drop_text(const Drop& drop, bool has_tags);

// Tells of losses once: compares the counters with those that it saw before.
class DropReporter {
 public:
  explicit DropReporter(bool has_tags) : has_tags_(has_tags) {}
  std::string report(const abi::MachineLosses& losses);

 private:
  bool has_tags_;
  abi::MachineLosses seen_{};
};

// Causes with what was lost by each, on all processors: "principal", "aggregation", "dynamic", …
std::vector<std::pair<std::string, uint64_t>> dropped(const abi::MachineLosses& losses);
// The last line of option json (json.h).
std::string summary_json(const abi::MachineLosses& losses, int exit_code);

// "invalid address"
std::string_view fault_name(abi::MachineFault fault);
// "dtrace: error in dt_clause_1 for probe ID 1 (dtrace:::BEGIN): invalid address (0x0) at BPF pc 1"
std::string error_text(const abi::MachineErrorRecord& error, const ProbeNames& probe);

}  // namespace clew::output::d
