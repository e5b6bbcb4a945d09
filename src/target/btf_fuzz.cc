// SPDX-License-Identifier: Apache-2.0
// Any bytes are somebody's .BTF section: every type of it is read, written as C, and every name of
// it is searched, by kinds and as members of each record.
#include <algorithm>
#include <string>

#include <bpf/libbpf.h>

#include "base/assert.h"
#include "target/btf.h"

namespace clew::target {
namespace {

constexpr BtfId kTypesMax = 100;  // Looked at; a section may have more.
constexpr size_t kNamesMax = 5;   // Of a record's members.

void check_members(const Btf& btf, BtfId record) {
  const std::vector<BtfMember> members = btf.members(record);
  for (size_t i = 0; i < std::min(members.size(), kNamesMax); ++i) {
    const std::string name(members[i].name);
    const bool is_path = name.empty() || name.find('.') != std::string::npos;
    CLEW_ASSERT(is_path || btf.member(record, name).has_value());
    (void)btf.member(record, name + ".next." + name);
  }
  (void)btf.member(record, "no such member");
}

void check_type(const Btf& btf, BtfId id) {
  const BtfType type = btf.at(id);
  CLEW_ASSERT(type.name == btf.at(id).name);
  const bool is_record = type.kind == BtfKind::Struct || type.kind == BtfKind::Union;
  CLEW_ASSERT(is_record || btf.members(id).empty());
  if (is_record) check_members(btf, id);
  for (const BtfEnumerator& each : btf.enumerators(id)) {
    CLEW_ASSERT(each.name.empty() || btf.find_enumerator(each.name).has_value());
  }
  (void)btf.parameters(id);
  (void)c_type_text(btf, id);
  const BtfType stripped = btf.at(btf.strip(id));
  CLEW_ASSERT(stripped.kind != BtfKind::Typedef && stripped.kind != BtfKind::Qualifier);
  if (type.name.empty()) return;
  const BtfId found = btf.find(type.kind, type.name);
  CLEW_ASSERT(found != kBtfVoid && found <= id);
}

}  // namespace
}  // namespace clew::target

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  (void)libbpf_set_print(nullptr);  // It has a line for every refusal.
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace target = clew::target;
  const auto btf = target::Btf::of_section({data, size});
  if (!btf) return 0;
  const target::BtfId end = std::min(btf->end_id(), target::kTypesMax);
  for (target::BtfId id = btf->first_id(); id < end; ++id)
    target::check_type(*btf, id);
  (void)btf->text_at(static_cast<uint32_t>(size));
  return 0;
}
