// SPDX-License-Identifier: Apache-2.0
#include "engine/d_types.h"

#include <gtest/gtest.h>

namespace clew::engine {
namespace {

using query::d::kNoType;
using query::d::Tag;
using query::d::TypeId;
using query::d::TypeKind;
using query::d::TypeTable;

class KernelTypesInD : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = target::Btf::of_kernel();
    if (!opened) GTEST_SKIP() << opened.error().message;
    btf_ = std::make_unique<target::Btf>(std::move(*opened));
    table_.set_provider(&provider_);
  }
  // What BTF itself says about a member of a struct, with dots.
  [[nodiscard]] uint64_t offset_of(std::string_view record, std::string_view member) const {
    const auto found = btf_->member(btf_->find(target::BtfKind::Struct, record), member);
    EXPECT_TRUE(found.has_value()) << member;
    return found ? found->offset_bits : ~uint64_t{0};
  }
  [[nodiscard]] const target::Btf& btf() const { return *btf_; }

  KernelTypes provider_;
  TypeTable table_;

 private:
  std::unique_ptr<target::Btf> btf_;
};

TEST_F(KernelTypesInD, AreReadWithTheirMembersWhenTheyAreNamed) {
  const TypeId task = table_.find("", Tag::Struct, "task_struct");
  ASSERT_NE(task, kNoType);
  EXPECT_EQ(table_.at(task).kind, TypeKind::Struct);
  EXPECT_EQ(table_.size_of(task),
            btf().at(btf().find(target::BtfKind::Struct, "task_struct")).size_bytes);
  for (const char* name : {"pid", "tgid", "comm", "mm", "exit_code", "thread", "flags"}) {
    const auto place = table_.member(task, name);
    ASSERT_TRUE(place.has_value()) << name;
    EXPECT_EQ(place->offset_bits, offset_of("task_struct", name)) << name;
  }
  EXPECT_EQ(table_.name_of(table_.member(task, "comm")->type), "char [16]");
  EXPECT_EQ(table_.name_of(table_.member(task, "pid")->type), "pid_t");
}

TEST_F(KernelTypesInD, LeaveWhatIsPointedToForLater) {
  const TypeId task = table_.find("vmlinux", Tag::Struct, "task_struct");
  const TypeId mm = table_.at(table_.member(task, "mm")->type).target;
  EXPECT_EQ(table_.at(mm).kind, TypeKind::Forward);
  EXPECT_EQ(table_.complete(mm), mm);
  EXPECT_EQ(table_.at(mm).kind, TypeKind::Struct);
  EXPECT_TRUE(table_.member(mm, "pgd").has_value());
}

TEST_F(KernelTypesInD, LookThroughAnonymousMembers) {
  const TypeId sock = table_.find("", Tag::Struct, "sock_common");
  ASSERT_NE(sock, kNoType);
  EXPECT_EQ(table_.member(sock, "skc_dport")->offset_bits, offset_of("sock_common", "skc_dport"));
}

TEST_F(KernelTypesInD, KeepBitFields) {
  const TypeId task = table_.find("", Tag::Struct, "task_struct");
  const auto place = table_.member(task, "in_execve");
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->bit_size, 1);
  EXPECT_EQ(place->offset_bits, offset_of("task_struct", "in_execve"));
}

// Every record of the kernel converts, and has the size that it has there.
TEST_F(KernelTypesInD, ConvertAllRecordsOfTheKernel) {
  size_t wrong = 0;
  size_t count = 0;
  for (target::BtfId id = btf().first_id(); id < btf().end_id(); ++id) {
    const target::BtfType type = btf().at(id);
    if (type.kind != target::BtfKind::Struct || type.name.empty()) continue;
    if (btf().find(type.kind, type.name) != id) continue;
    const TypeId found = table_.find("", Tag::Struct, type.name);
    ++count;
    if (found == kNoType || table_.size_of(found) != type.size_bytes) ++wrong;
  }
  EXPECT_GT(count, 1000U);
  EXPECT_EQ(wrong, 0U);
}

TEST_F(KernelTypesInD, OfOneTableAreNotTakenForAnothers) {
  const TypeId first = table_.find("", Tag::Struct, "list_head");
  TypeTable other;
  other.set_provider(&provider_);
  (void)other.find("", Tag::Struct, "task_struct");
  const TypeId second = other.find("", Tag::Struct, "list_head");
  EXPECT_EQ(table_.name_of(first), "struct list_head");
  EXPECT_EQ(other.name_of(second), "struct list_head");
  EXPECT_EQ(other.size_of(second), 16U);
}

TEST_F(KernelTypesInD, GiveWayToThoseOfTheProgram) {
  const TypeId own = table_.declare(Tag::Struct, "list_head");
  ASSERT_TRUE(table_.define_record(own, {{"x", table_.find_base("char")}}).has_value());
  EXPECT_EQ(table_.find("", Tag::Struct, "list_head"), own);
  // The kernel's own uses of that name keep their size.
  const TypeId task = table_.find("", Tag::Struct, "task_struct");
  EXPECT_EQ(table_.size_of(table_.member(task, "tasks")->type), 16U);
}

TEST_F(KernelTypesInD, HaveTypedefsAndEnumerators) {
  const TypeId umode = table_.find("", Tag::None, "umode_t");
  ASSERT_NE(umode, kNoType);
  EXPECT_EQ(table_.size_of(umode), 2U);
  EXPECT_FALSE(table_.is_signed(umode));
  TypeId type = kNoType;
  const auto value = table_.find_enumerator("PIDTYPE_TGID", type);
  ASSERT_TRUE(value.has_value());
  EXPECT_EQ(value->value, 1);
  EXPECT_FALSE(table_.find_enumerator("no_such_enumerator", type).has_value());
  const TypeId states = table_.find("", Tag::Enum, "pid_type");
  EXPECT_EQ(table_.at(states).kind, TypeKind::Enum);
}

TEST_F(KernelTypesInD, ThatDoNotExistAreNone) {
  EXPECT_EQ(table_.find("", Tag::Struct, "no_such_struct"), kNoType);
  EXPECT_EQ(table_.find("no_such_module", Tag::Struct, "task_struct"), kNoType);
  EXPECT_EQ(table_.find("", Tag::Union, "task_struct"), kNoType);
}

TEST_F(KernelTypesInD, OfFunctionsAreTheirPrototypes) {
  const auto symbol = provider_.find_symbol(table_, "vmlinux", "vfs_read");
  if (!symbol && symbol.error().code != ErrorCode::NotFound) {
    GTEST_SKIP() << symbol.error().message;
  }
  ASSERT_TRUE(symbol.has_value());
  EXPECT_NE(symbol->address, 0U);
  EXPECT_EQ(table_.name_of(symbol->type), "ssize_t (struct file *, char *, size_t, loff_t *)");
  const auto missing = provider_.find_symbol(table_, "", "no_such_symbol");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().message, "Unknown symbol name");
}

}  // namespace
}  // namespace clew::engine
