// SPDX-License-Identifier: Apache-2.0
// Names of return addresses, of this process itself.
#include "engine/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

// The second begins where the call of the first, which does not return, would return to.
asm(R"(
    .pushsection .text
    .type names_test_first, @function
names_test_first:
    call abort@PLT
    .size names_test_first, . - names_test_first
    .globl names_test_second
    .type names_test_second, @function
names_test_second:
    ret
    .size names_test_second, . - names_test_second
    .type names_test_restorer, @function
    .globl names_test_restorer
names_test_restorer:
    mov $15, %rax
    syscall
    .size names_test_restorer, . - names_test_restorer
    .popsection
)");
extern "C" void names_test_second();
extern "C" void names_test_restorer();

namespace clew::engine {
namespace {

using testing::EndsWith;

std::string name_of(void (*function)()) {
  auto catalog = target::Catalog::of_process(getpid(), target::default_catalog_options());
  EXPECT_TRUE(catalog.has_value());
  const std::vector<plan::SiteNames> none;
  ProcessNames names(getpid(), *catalog, none);
  return names.symbol(reinterpret_cast<uint64_t>(function));
}

TEST(Names, AReturnAddressIsOfTheFunctionThatMadeTheCall) {
  EXPECT_THAT(name_of(names_test_second), EndsWith("!names_test_first+0x5"));
}

TEST(Names, AHandlerOfSignalsReturnsToTheCodeThatEndsIt) {
  EXPECT_THAT(name_of(names_test_restorer), EndsWith("!names_test_restorer"));
}

TEST(Names, AProcessThatHasGoneBelongsToNobodyKnown) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  Owners owners;
  EXPECT_EQ(owners.of_process(child), answer::Owner());
  EXPECT_EQ(owners.of_user(answer::kNoUser).user, answer::kUnknownOwner);
  EXPECT_EQ(owners.of_group(0).container, answer::kUnknownOwner);
  EXPECT_EQ(owners.group_of(child), 0U);
}

// It was begun in the group of the process that began it, and with its user.
TEST(Names, AChildThatHasGoneBelongsToWhomItsParentDoes) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  auto catalog = target::Catalog::of_process(getpid(), target::default_catalog_options());
  ASSERT_TRUE(catalog.has_value());
  const std::vector<plan::SiteNames> none;
  ProcessNames names(getpid(), *catalog, none);
  names.add_child(1, child);
  EXPECT_EQ(names.owner(query::Field::User, 1), names.owner(query::Field::User, 0));
  EXPECT_EQ(names.owner(query::Field::User, 1).uid, geteuid());
}

TEST(Names, AProcessHasTheUserThatItMayActAs) {
  Owners owners;
  const answer::Owner own = owners.of_process(getpid());
  EXPECT_EQ(own.uid, geteuid());
  EXPECT_EQ(owners.of_user(0).user, "root");
  EXPECT_EQ(owners.of_user(3'999'999'999).user, "3999999999");  // Has no name.
  EXPECT_NE(own.cgroup, answer::kUnknownOwner);
}

}  // namespace
}  // namespace clew::engine
