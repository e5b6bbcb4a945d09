// SPDX-License-Identifier: Apache-2.0
// The suites run once more as on a machine without FSGSBASE (CMakeLists.txt). On such a machine
// that is what they have done already.
#include <cstdlib>

#include <gtest/gtest.h>
#include <sys/auxv.h>

namespace clew::live {
namespace {

constexpr unsigned long kFsGsBase = 2;  // HWCAP2_FSGSBASE, arch/x86/include/uapi/asm/hwcap2.h

class OtherWay : public testing::Environment {
 public:
  void SetUp() override {
    const bool is_asked_for = std::getenv("CLEW_NO_FSGSBASE") != nullptr;
    if (is_asked_for && (getauxval(AT_HWCAP2) & kFsGsBase) == 0)
      GTEST_SKIP() << "not again: it is this machine's own way, without FSGSBASE";
  }
};

[[maybe_unused]] const testing::Environment* const kOtherWay =
    testing::AddGlobalTestEnvironment(new OtherWay);

}  // namespace
}  // namespace clew::live
