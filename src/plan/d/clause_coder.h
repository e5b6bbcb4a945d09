// SPDX-License-Identifier: Apache-2.0
// Makes the program of one clause. Its parts are in files by what they translate: expression.cc,
// place.cc (what can be assigned to), call.cc (subroutines and built-ins), action.cc (what is
// recorded), aggregate.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/d/emitter.h"
#include "plan/d/generate.h"
#include "plan/d/storage.h"
#include "query/d/script.h"

namespace clew::plan::d {

// Where a value can be loaded from and stored to, after the code that finds it has run.
//
//     Window, Global   at `offset`, known now
//     GlobalIndexed    in the globals, at the number in `slot` + offset
//     Address          at the D pointer in `slot` + offset
//     Dynamic          an element of dynamic variable `variable`; its key is in `keys`, and with
//                      is_indexed the number in `slot` is added to the offset in it
struct Place {
  enum class Kind : uint8_t { Window, Global, GlobalIndexed, Address, Dynamic };
  Kind kind = Kind::Window;
  query::d::TypeId type = query::d::kNoType;
  uint32_t offset = 0;  // Dynamic: of the member in the element.
  Slot slot{};
  uint32_t variable = 0;  // In the script.
  std::vector<Slot> keys{};
  bool is_userland = false;
  bool is_member = false;  // Dynamic: not the whole element.
  bool is_indexed = false;
  uint8_t bit_offset = 0;
  uint8_t bit_size = 0;     // 0: no bit-field.
  uint32_t slots_used = 0;  // To release when done.
};

// What a program may have in its thread's window.
struct ClauseForm {
  std::vector<ExtensionCall>* calls = nullptr;  // Noted there.
  std::vector<CellUpdate>* updates = nullptr;   // What can be counted in cells is, and noted there.
  bool has_privates = false;                    // Generated::privates are words.
};

class ClauseCoder {
 public:
  ClauseCoder(const query::d::Script& script, const StoragePlan& storage, Generated& generated,
              uint32_t clause, ClauseForm form);

  // The program, and the clause's record layout in `generated`.
  query::d::Compiled<isa::Program> code(const query::d::Clause& clause);

 private:
  using Node = query::d::Node;
  using Statement = query::d::Statement;
  using TypeId = query::d::TypeId;

  // --- statements (clause_coder.cc, action.cc, aggregate.cc)
  void code_body(const std::vector<Statement>& body);
  void code_if(const Statement& statement);
  void code_action(const Statement& statement);
  void code_record(const Statement& statement);
  void code_flag(const query::d::RecordedAction& action);
  void code_aggregate(const Statement& statement);
  [[nodiscard]] std::optional<CellUpdate> cell_update(const Statement& statement) const;
  void code_cells(const Statement& statement, CellUpdate update);
  void add_to_cell(Register block, uint32_t word, Register amount);
  void add_number(uint32_t word, uint32_t update);
  void find_bucket();
  void count_in_bucket(const Node& function, uint32_t update);
  void write_keys(const Node& target, const query::d::KeyLayout& key, uint32_t base);
  void record_key(const Node& operand, const query::d::RecordField& field, uint32_t base);
  void record_short_key(const Node& operand, query::d::StoredForm form, uint32_t base);
  void copy_key(uint32_t from, uint32_t size_bytes);
  void code_speculation(const Statement& statement);
  void code_copy_out(const Statement& statement);
  void text_bytes(Slot string, const Node* most);
  void lay_out(const std::vector<Statement>& body);
  void lay_out_action(const Statement& statement);
  void lay_out_print(const Node& operand, query::d::RecordedAction& action);
  void place_fields();
  void clear_flags();
  query::d::RecordedAction& next_action() { return layout().actions[next_action_++]; }
  query::d::RecordLayout& layout() { return generated_.records[clause_]; }
  void record_printed(const Node& operand, const std::vector<query::d::RecordField>& fields);
  void record_shown_address(uint32_t base);
  void record_address(const Node& argument, const query::d::RecordField& field, uint32_t base);
  void record_at(const Node& argument, const query::d::RecordField& field, uint32_t base);

  // --- expressions: the value to r0 (expression.cc)
  void value(const Node& node);
  void unary(const Node& node);
  void increment(const Node& node);
  void binary(const Node& node);
  void logical(const Node& node);
  void compare_strings(const Node& node);
  void part(const Node& node);
  void arithmetic(query::d::BinaryOperator op, TypeId left, TypeId right, TypeId result);
  void divide(query::d::BinaryOperator op, bool is_signed);
  void compare(query::d::BinaryOperator op, bool is_signed);
  void conditional(const Node& node);
  void assign(const Node& node);
  void object_or_value(const Node& node);

  // --- private variables (private_code.cc)
  [[nodiscard]] std::optional<uint32_t> private_word(uint32_t variable) const;
  [[nodiscard]] std::optional<uint32_t> tick_word(std::optional<uint32_t> variable) const;
  void ticks();
  void elapsed(uint32_t since, TypeId type);
  void note_time(uint32_t word);

  void remove(const Node& target);
  void translated(const Node& node);
  void store_member(Slot object, const Node& member);
  void store_text(const Place& at, Slot object);
  void cast(const Node& node);
  void string_of(const Node& node);
  void text_of(const Node& argument);
  void truth(const Node& node);  // 0 or not 0
  void identifier(const Node& node);
  void convert(TypeId from, TypeId to);
  [[nodiscard]] TypeId common_type(TypeId left, TypeId right) const;
  [[nodiscard]] uint32_t element_bytes(TypeId pointer) const;

  // --- places (place.cc)
  Place place(const Node& node);
  [[nodiscard]] bool is_associative_element(const Node& node) const;
  Place variable_place(const Node& node, uint32_t variable);
  Place member_place(const Node& node);
  [[nodiscard]] Place member_place_at(Place at, const Node& node) const;
  Place element_place(const Node& node);
  Place pointer_place(const Node& pointer, TypeId type, bool is_userland);
  void address_of(const Place& place);  // A D pointer to it, in r0.
  void address_of_copy(const Place& place);
  void load(const Place& place);               // The value to r0.
  void store(const Place& place, Slot value);  // Keeps the slot.
  Place in_copy(const Place& place, uint32_t room);
  void load_dynamic(const Place& place);
  void store_dynamic(const Place& place, Slot value);
  void store_bytes(const Place& place, Slot value);
  void load_bits(const Place& place);
  void cut_to_bits(const Place& place);
  void insert_bits(const Place& place, Slot value);
  void load_string_variable(const Place& place);
  void store_string_variable(const Place& place, Slot value);
  void store_string_element(const Place& place, Slot value);
  void load_string_part(const Place& place);
  void store_string_part(const Place& place, Slot value);
  void store_room(const Place& place, uint32_t room, uint32_t size);
  void global_offset(Register destination, const Place& place);
  void load_string_flag(const Place& place);
  void store_string_flag(const Place& place, Slot value);
  void pad_string(uint32_t room, Slot value);
  void write_key(const Place& place);
  void release(const Place& place);
  void check_index(const query::d::Type& array);

  // --- calls (call.cc)
  void builtin(const Node& node);
  void subroutine(const Node& node);
  void extension_call(const Node& node);  // extension_code.cc
  void call_with(const Node& node, abi::MachineAccessor accessor, bool has_destination);
  void copy_in(const Node& node);
  void check_scratch();
  void swap_bytes(const Node& node, uint32_t bits);

  // Room in the window until the statement ends.
  uint32_t temporary(uint32_t size_bytes);
  uint32_t string_temporary();
  // The same number, which has to be one that accessors copy.
  uint32_t copied(uint64_t size_bytes);

  [[nodiscard]] const query::d::TypeTable& types() const { return script_.types; }
  isa::Builder& code() { return emit_.code(); }

  const query::d::Script& script_;
  const StoragePlan& storage_;
  Generated& generated_;
  uint32_t clause_;
  ClauseForm form_;
  Emitter emit_;
  uint32_t next_action_ = 0;
  uint32_t temporaries_ = 0;      // Next free byte.
  uint32_t temporaries_end_ = 0;  // The most that any statement needed.
  bool is_too_large_ = false;
  bool is_part_ = false;     // What binary() computes next is an operand of its like.
  uint64_t copied_max_ = 0;  // The largest of copied().
  uint32_t line_ = 0;
};

}  // namespace clew::plan::d
