// SPDX-License-Identifier: Apache-2.0
#include "recorder/stamps.h"

#include <gtest/gtest.h>

namespace clew::recorder {
namespace {

TEST(Stamps, AreOfImportsByNameInTheOrderOfTheirSlots) {
  target::LinkedNames names;
  names.imports = {{64, "read"}, {48, "memcpy"}, {32, "pthread_mutex_unlock"}, {40, "close"}};
  const std::vector<StampedImport> expected = {{32, Stamped::InFront},
                                               {40, Stamped::InFront, abi::Transfer::Closes},
                                               {64, Stamped::Around, abi::Transfer::Receives}};
  EXPECT_EQ(stamped_imports(names), expected);
}

TEST(Stamps, AreNotOfWhatTheFileBringsItself) {
  target::LinkedNames names;
  names.imports = {{64, "read"}, {72, "write"}};
  names.exports = {{"read", 0x1000}};
  EXPECT_EQ(stamped_imports(names),
            (std::vector<StampedImport>{{72, Stamped::Around, abi::Transfer::Sends}}));
}

TEST(Stamps, OfFilesAreThoseThatThereAre) {
  const StampedImport peeking{8, Stamped::Around, abi::Transfer::Receives, abi::Register::R8};
  EXPECT_EQ(stamped_import(8, Stamped::Around, transfer_bits(peeking)), peeking);
  size_t known = 0;
  for (uint32_t bits = 0; bits < 1U << 16; ++bits)
    known += stamped_import(8, Stamped::Around, bits) ? 1 : 0;
  EXPECT_EQ(known, 8U * 3U);
  EXPECT_FALSE(stamped_import(8, Stamped::Around, 1U << 16));
}

}  // namespace
}  // namespace clew::recorder
