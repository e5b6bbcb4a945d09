// SPDX-License-Identifier: Apache-2.0
// How much of installed files is proved, and that the copies of it pass the check.
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "copy/check.h"
#include "copy/prove_module.h"

namespace clew::copy {
namespace {

constexpr double kProvedMin = 0.97;  // Of the bytes of functions.

class ProveFiles : public testing::TestWithParam<const char*> {};

std::string reasons_of(const Facts& facts, const ModuleProof& proof) {
  std::map<Reason, std::string> reasons;
  for (const NotCopied& one : proof.refused) {
    reasons[one.refusal.reason] +=
        fmt::format(" {:x}+{:x}", facts.code.functions()[one.function].address, one.size_bytes);
  }
  std::string shown;
  for (const auto& [reason, functions] : reasons)
    shown += fmt::format("{}:{}\n", name(reason), functions);
  return shown;
}

TEST_P(ProveFiles, NearlyAllOfTheTextIsProvedAndItsCopyIsRight) {
  const auto image = target::ModuleImage::read(GetParam());
  if (!image) GTEST_SKIP() << GetParam() << " is not installed";
  const auto facts = Facts::of(*image);
  ASSERT_TRUE(facts) << facts.error().message;
  const ModuleProof proof = prove_module(**facts);
  const auto all = static_cast<double>(proof.proved_bytes + proof.refused_bytes);
  EXPECT_GE(static_cast<double>(proof.proved_bytes), kProvedMin * all)
      << reasons_of(**facts, proof);

  const uint64_t behind = image->sections().back().end() + 0x10000;
  auto copy = write_copy(**facts, proof.proved, {}, behind);
  ASSERT_TRUE(copy) << copy.error().message;
  RecordProperty("copied_bytes", static_cast<int>(copy->bytes.size()));
  const auto checked = check(**facts, proof.proved, {}, std::move(*copy));
  ASSERT_TRUE(checked) << checked.error().message;
  fmt::print("{} {} {}\n", GetParam(), checked->copy().bytes.size(), proof.proved_bytes);
}

INSTANTIATE_TEST_SUITE_P(Installed, ProveFiles,
                         testing::Values("/bin/gzip", "/lib/x86_64-linux-gnu/libbz2.so.1.0",
                                         "/lib/x86_64-linux-gnu/liblzma.so.5", "/usr/bin/lua5.4",
                                         "/lib/x86_64-linux-gnu/libsqlite3.so.0",
                                         "/usr/bin/redis-server", "/usr/sbin/nginx",
                                         "/lib/x86_64-linux-gnu/libstdc++.so.6",
                                         "/usr/bin/python3.11"));

}  // namespace
}  // namespace clew::copy
