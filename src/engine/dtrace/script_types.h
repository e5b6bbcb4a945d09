// SPDX-License-Identifier: Apache-2.0
// Where the types of a D script come from that it does not declare itself: the kernel first, then
// the processes of -c and -p.
#pragma once

#include "engine/d_types.h"
#include "engine/d_user_types.h"

namespace clew::engine {

class ScriptTypes final : public query::d::TypeProvider {
 public:
  void add_process(pid_t pid) { user_.add_process(pid); }

  query::d::TypeId find(query::d::TypeTable& table, std::string_view module, query::d::Tag tag,
                        std::string_view name) override;
  std::optional<query::d::TypeEnumerator> find_enumerator(query::d::TypeTable& table,
                                                          std::string_view name) override;
  Expected<Symbol> find_symbol(query::d::TypeTable& table, std::string_view module,
                               std::string_view name) override {
    return kernel_.find_symbol(table, module, name);
  }

 private:
  KernelTypes kernel_;
  UserTypes user_;
};

}  // namespace clew::engine
