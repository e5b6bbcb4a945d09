// SPDX-License-Identifier: Apache-2.0
// Answers the query checker's questions about names and types from the DWARF of the traced
// process's modules.
#pragma once

#include <string_view>
#include <vector>

#include "query/type_source.h"
#include "target/catalog.h"

namespace clew::engine {

class CatalogTypes final : public query::TypeSource {
 public:
  // Borrows the catalog. Handles are module << 32 | target::TypeId.
  explicit CatalogTypes(target::Catalog& catalog) : catalog_(catalog) {}

  Expected<std::vector<query::Parameter>> parameters(const query::Source& source) override;
  Expected<query::TypeHandle> return_type(const query::Source& source) override;
  query::TypeHandle find_type(std::string_view name) override;
  query::CType describe(query::TypeHandle type) override;
  std::vector<query::CMember> members(query::TypeHandle type) override;
  std::vector<query::Enumerator> enumerators(query::TypeHandle type) override;

  // Functions whose signatures are compared at most, for one source.
  static constexpr size_t kFunctionsMax = 200;

 private:
  struct Described {
    size_t module;
    target::Signature signature;
  };
  Expected<std::vector<Described>> signatures(const query::Source& source);
  target::DebugInfo* debug_of(query::TypeHandle type);  // Null: its module has none.

  target::Catalog& catalog_;
};

// "module!function" or "function": the catalog's pattern of a source.
std::string pattern_of(const query::Source& source);

}  // namespace clew::engine
