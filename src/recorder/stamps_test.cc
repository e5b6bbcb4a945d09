// SPDX-License-Identifier: Apache-2.0
#include "recorder/stamps.h"

#include <gtest/gtest.h>

namespace clew::recorder {
namespace {

TEST(Stamps, AreOfImportsByNameInTheOrderOfTheirSlots) {
  target::LinkedNames names;
  names.imports = {{64, "read"}, {48, "memcpy"}, {32, "pthread_mutex_unlock"}, {40, "close"}};
  const std::vector<StampedImport> expected = {
      {32, Stamped::InFront}, {40, Stamped::InFront}, {64, Stamped::Around}};
  EXPECT_EQ(stamped_imports(names), expected);
}

TEST(Stamps, AreNotOfWhatTheFileBringsItself) {
  target::LinkedNames names;
  names.imports = {{64, "read"}, {72, "write"}};
  names.exports = {{"read", 0x1000}};
  EXPECT_EQ(stamped_imports(names), (std::vector<StampedImport>{{72, Stamped::InFront}}));
}

}  // namespace
}  // namespace clew::recorder
