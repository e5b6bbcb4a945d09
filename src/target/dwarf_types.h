// SPDX-License-Identifier: Apache-2.0
// TypeTable: types of DWARF as handles and values, and the index of type names. Internal to
// target/; the public face is DebugInfo in types.h.
//
// The index grows a unit at a time, until the name that is asked for is found: most programs' units
// name the same types again and again.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "target/dwarf_file.h"
#include "target/types.h"

namespace clew::target {

class TypeTable {
 public:
  // `file` must outlive it and stay where it is.
  explicit TypeTable(DwarfFile& file) : file_(file), entries_(1) {}

  // The handle for the type that an entry (parameter, member, …) has. kVoidType for none.
  TypeId type_of(Dwarf_Die& die);

  TypeId find(std::string_view name);
  const TypeDescription& describe(TypeId type);
  std::vector<TypeMember> members(TypeId record);
  std::vector<TypeEnumerator> enumerators(TypeId enumeration);
  std::optional<TypeEnumerator> find_enumerator(std::string_view name);
  // The entry behind a type with typedefs and qualifiers stripped and a declaration replaced by its
  // definition; null for types that have none (void, made-up pointers and dimensions).
  Dwarf_Die* definition(TypeId type);

 private:
  struct Entry {
    Dwarf_Die die{};         // As referred to: its typedef name counts.
    Dwarf_Die definition{};  // Stripped.
    bool has_die = false;
    bool is_described = false;
    TypeDescription description;
  };

  TypeId add(Dwarf_Die die);
  TypeId add_made_up(TypeDescription description);
  TypeId pointer_to(TypeId target);
  void fill(TypeId type);
  void fill_names(TypeDescription& description, Dwarf_Die die, Dwarf_Die stripped);
  void fill_by_tag(TypeDescription& description, Dwarf_Die& die);
  void fill_base(TypeDescription& description, Dwarf_Die& die);
  void fill_enumeration(TypeDescription& description, Dwarf_Die& die);
  void fill_array(TypeDescription& description, Dwarf_Die& die);
  std::string name_of(Dwarf_Die& die, unsigned depth);
  std::string record_name(Dwarf_Die& die);
  std::string qualified_name(Dwarf_Die& die);
  Dwarf_Die definition_of(Dwarf_Die die);

  void add_members(Dwarf_Die& record, uint64_t offset, unsigned depth,
                   std::vector<TypeMember>& members);
  void add_member(Dwarf_Die& die, uint64_t offset, unsigned depth,
                  std::vector<TypeMember>& members);

  bool index_next_unit();
  void index_unit(size_t unit);
  void index_scope(Dwarf_Die& scope, const std::string& prefix, unsigned depth);
  void index_type(Dwarf_Die& die, const std::string& prefix, unsigned depth);
  // A definition by its name without "struct" and the like. `tag` 0 = any.
  const Dwarf_Die* find_named(const std::string& name, int tag);

  DwarfFile& file_;
  std::vector<Entry> entries_;
  std::unordered_map<const void*, TypeId> by_die_;
  std::unordered_map<TypeId, TypeId> pointers_;
  size_t next_unit_ = 0;
  std::vector<bool> is_indexed_;                         // By unit.
  std::unordered_map<const void*, size_t> unit_by_die_;  // By the unit's own entry.
  std::unordered_multimap<std::string, Dwarf_Die> by_name_;
  std::unordered_map<const void*, std::string> qualified_;
  std::unordered_map<std::string, int64_t> enumerators_;
};

}  // namespace clew::target
