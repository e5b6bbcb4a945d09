// SPDX-License-Identifier: Apache-2.0
// The inside of lower_kernel(): one object that lays out the state and writes the programs of the
// sources (kernel_lower.cc), and those that know which processes count (kernel_scope.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "abi/context.h"
#include "abi/machine/accessor.h"
#include "abi/query_window.h"
#include "plan/capture.h"
#include "plan/coder.h"
#include "plan/kernel_form.h"
#include "plan/kernel_lower.h"
#include "plan/plan.h"

namespace clew::plan {

// In the window of the D machine.
constexpr uint32_t machine(uint32_t offset) {
  return abi::kQueryMachine + offset;
}

// Of the context that stands for the event.
constexpr int32_t context_of(abi::QueryWord word) {
  constexpr auto kFirst = static_cast<int32_t>(abi::QueryWord::Pid);
  return static_cast<int32_t>(offsetof(abi::Context, stack_arguments)) +
         8 * (static_cast<int32_t>(word) - kFirst);
}

class KernelLowering {
 public:
  KernelLowering(const Plan& plan, const KernelLowerInput& input)
      : plan_(plan), query_(plan.query), input_(input), owner_keys_(owner_keys(plan)) {}

  Expected<KernelLowered> run();

 private:
  Expected<void> find_state();
  Expected<void> find_table();
  size_t table_for(const query::Aggregate& aggregate, uint32_t key_words);
  [[nodiscard]] bool shares_table(size_t aggregate) const;
  [[nodiscard]] std::vector<const query::Expression*> counted() const;
  [[nodiscard]] std::vector<const query::Expression*> key() const;
  Expected<void> place_samples();
  void offer_functions();

  [[nodiscard]] bool is_lowered(uint16_t source) const;
  Expected<void> program(uint16_t source);
  Expected<void> recorder(uint16_t source);
  Expected<void> restrict(Coder& coder, const query::Source& source);
  Expected<void> restrict_to_family(Coder& coder, const query::Source& source);
  [[nodiscard]] bool follows() const { return input_.family != nullptr && input_.family->follows; }
  Expected<void> family();
  Expected<void> family_begins(const query::Query& begins);
  Expected<void> family_ends(const query::Query& ends);
  Expected<void> filters(Coder& coder, const query::Source& source);
  Expected<void> provide(Coder& coder, const query::Source& source, const KernelUse& use);
  [[nodiscard]] KernelUse use_of(const query::Source& source) const;
  [[nodiscard]] bool pairs_for_open(const query::Source& source) const;
  Expected<void> entry(Coder& coder, const query::Source& source, const KernelUse& use);
  static void put_call_key(Coder& coder, const query::Source& source);
  static void load_probe(Coder& coder);
  void take_entry(Coder& coder, const query::Source& source);
  void load_word(Coder& coder, abi::QueryWord word);
  Expected<void> store(Coder& coder, const query::Source& source, const query::Expression& value,
                       int32_t at);
  void store_stack(Coder& coder, const query::Source& source, const query::Expression& stack,
                   int32_t at);
  static void load_caller(Coder& coder, const query::Source& source);
  Expected<void> emit_event(Coder& coder, uint16_t source);
  Expected<void> update_cells(Coder& coder, const query::Source& source);
  Expected<void> prepare_value(Coder& coder, const query::Aggregate& aggregate);
  Expected<void> put_bucket(Coder& coder, const query::Aggregate& aggregate);

  static void call(Coder& coder, abi::MachineAccessor accessor) {
    call(coder, number_of(accessor));
  }
  static void call(Coder& coder, abi::QueryAccessor accessor) { call(coder, number_of(accessor)); }
  static void call(Coder& coder, uint32_t accessor) {
    coder.builder()
        .load_window(isa::Register::R1, machine(0))
        .call(static_cast<abi::Accessor>(accessor));
  }
  template <typename Accessor>
  static uint32_t number_of(Accessor accessor) {
    return static_cast<uint32_t>(accessor);
  }

  const Plan& plan_;
  const query::Query& query_;
  const KernelLowerInput& input_;
  std::vector<query::Expression> owner_keys_;  // Behind those of the query.
  KernelLowered result_;
  CoderEnvironment environment_;
  Captured captured_;
  KernelUse provided_;    // In the program that is written.
  int32_t variable_ = 0;  // Where its source keeps entries.
};

}  // namespace clew::plan
