// SPDX-License-Identifier: Apache-2.0
// KernelTypes: the kernel's types, enumerators and symbols for D programs, converted from BTF when
// they are named (d_conversion.h).
//
// It keeps no TypeIds: what was converted is found again in the table by its name, so that one
// KernelTypes serves any number of tables and their copies.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "query/d/types.h"
#include "target/btf_files.h"

namespace clew::engine {

class KernelTypes final : public query::d::TypeProvider {
 public:
  query::d::TypeId find(query::d::TypeTable& table, std::string_view module, query::d::Tag tag,
                        std::string_view name) override;
  std::optional<query::d::TypeEnumerator> find_enumerator(query::d::TypeTable& table,
                                                          std::string_view name) override;
  Expected<Symbol> find_symbol(query::d::TypeTable& table, std::string_view module,
                               std::string_view name) override;

 private:
  // Shows those that a module's name means ("" is any, vmlinux first) until `visit` is content.
  void visit_types(std::string_view module, const std::function<bool(const target::Btf&)>& visit);
  query::d::TypeId symbol_type(query::d::TypeTable& table, std::string_view module,
                               std::string_view name);

  target::BtfFiles types_;
};

}  // namespace clew::engine
