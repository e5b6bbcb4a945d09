// SPDX-License-Identifier: Apache-2.0
// The inside of lower(): one object that first lays out the state (lower_state.cc), then writes the
// programs (lower.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "plan/capture.h"
#include "plan/coder.h"
#include "plan/lower.h"
#include "plan/plan.h"

namespace clew::plan {

// What an expression uses besides the context: the entry's record, and memory.
struct Use {
  bool elapsed = false;
  bool time = false;
  bool return_value = false;
  bool memory = false;  // Of the traced program.
  bool caller = false;
  bool stack = false;
  std::set<uint16_t> arguments;
  std::set<std::string> functions;   // Of extensions.
  std::set<SiteConstant> constants;  // Besides the group.

  [[nodiscard]] bool any() const { return elapsed || !arguments.empty(); }
};

// Adds to `use` what the expression uses, with what is behind its lets and inputs.
void find_use(const query::Query& query, const query::Source& source,
              const query::Expression& expression, Use& use);

inline bool is_exit_source(query::SourceKind kind) {
  return kind == query::SourceKind::Return || kind == query::SourceKind::Exception;
}

// Lowers one plan: first the layout of the state, then one program per source.
class Lowering {
 public:
  Lowering(const Plan& plan, const LowerInput& input)
      : plan_(plan), query_(plan.query), input_(input) {}

  Expected<Lowered> run();

 private:
  Expected<void> find_state();
  Expected<void> lay_out();
  void place_dense();
  void place_table();
  Expected<void> place_walk();
  void place_samples();
  Expected<void> place_extensions();
  void place_state(const extension::Extension& extension);
  void link_function(const extension::Function& function);
  [[nodiscard]] Use use_of(const query::Source& source) const;
  [[nodiscard]] std::vector<query::Expression> probe_expressions(const query::Source& source) const;

  [[nodiscard]] const Duty* duty_of(size_t source) const {
    return plan_.contexts.duties.empty() ? nullptr : &plan_.contexts.duties[source];
  }
  Expected<void> place_contexts();
  Expected<void> check_duty(uint16_t source) const;
  Expected<bool> perform(Coder& coder, uint16_t source, const Use& use);
  void unpack(Coder& coder, const Duty& duty);
  Expected<void> pack(Coder& coder, const Duty& duty, const Use& use);
  Expected<void> pack_cells(Coder& coder, const Duty& duty);
  static void name_counted(Coder& coder, int32_t at);
  Expected<void> store_columns(Coder& coder, const Duty& duty, isa::Register base,
                               int32_t offset) const;
  Expected<void> act(Coder& coder, const Duty& duty);
  void count_of_contexts(Coder& coder, abi::ContextCounter counter) const;
  void count_of_duty(Coder& coder, uint16_t source, DutyCounter counter) const;
  void require(Coder& coder, isa::Register value, abi::ContextCounter otherwise);
  void open_context(Coder& coder, const Duty& duty);
  void count_event(Coder& coder);
  Expected<void> program(uint16_t source);
  Expected<void> count(Coder& coder, uint16_t source, const Use& use);
  Expected<void> add_recorder(Coder& coder, std::string_view name, uint16_t source,
                              ProgramPoint point);
  Expected<void> recorder(uint16_t source);
  Expected<void> remover(uint16_t source);
  Expected<void> unwinder();
  Expected<void> part(Coder& coder, uint16_t source);
  void find_records(const query::Source& source);
  // Its calls are told apart for those alone that are open at the end.
  [[nodiscard]] bool pairs_for_open(const query::Source& source) const {
    return query_.including_open && source.kind == query::SourceKind::Return;
  }
  Expected<isa::Program> tail_call_program(const query::Source& source, bool has_record,
                                           const Coder& main);
  Expected<void> filters(Coder& coder);
  Expected<std::vector<std::optional<int32_t>>> read_arguments(Coder& coder,
                                                               const query::Source& source);
  Expected<void> update_cells(Coder& coder, const query::Source& source);
  struct KeyPlace {
    int32_t area = 0;  // Offset from r10.
    bool in_register = false;
  };
  Expected<KeyPlace> hash_key(Coder& coder);
  Expected<void> find_entry(Coder& coder);
  Expected<void> find_long_entry(Coder& coder);
  Expected<void> emit_event(Coder& coder, uint16_t source);
  int32_t begin_event(Coder& coder, uint32_t size_max);
  // `at`: offset of the event from r9.
  Expected<void> emit_short_event(Coder& coder, uint16_t source, int32_t at);
  Expected<void> emit_long_event(Coder& coder, uint16_t source, int32_t at);
  Expected<int32_t> store_event(Coder& coder, int32_t at);
  void count_passed(Coder& coder);
  void add_generation(Coder& coder, isa::Register pointer, uint32_t half_bytes);

  // `size_bytes` at the next free place of the region.
  uint32_t place(uint64_t size_bytes, uint32_t alignment = 64);

  const Plan& plan_;
  const query::Query& query_;
  const LowerInput& input_;
  Lowered result_;
  CoderEnvironment environment_;
  Captured captured_;
  uint64_t next_ = abi::kFrameEnd;
  uint32_t passed_offset_ = 0;
  uint32_t key_offset_ = 0;  // Of keys with stacks.
};

}  // namespace clew::plan
