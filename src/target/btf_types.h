// SPDX-License-Identifier: Apache-2.0
// BtfTypes: the types of a Btf in the model of type_description.h. Handles are its BtfIds; the
// names are those of c_type_text().
#pragma once

#include "target/btf.h"
#include "target/type_description.h"

namespace clew::target {

class BtfTypes final : public TypeReader {
 public:
  // Borrows it.
  explicit BtfTypes(const Btf& btf) : btf_(btf) {}

  TypeId find_type(std::string_view name) override;
  TypeDescription describe(TypeId type) override;
  std::vector<TypeMember> members(TypeId record) override;
  std::vector<TypeEnumerator> enumerators(TypeId enumeration) override;

 private:
  [[nodiscard]] uint64_t size_of(BtfId type) const;

  const Btf& btf_;
};

}  // namespace clew::target
