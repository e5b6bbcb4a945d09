// SPDX-License-Identifier: Apache-2.0
#include "cluster/base64.h"

#include <string>

#include <gtest/gtest.h>

namespace clew::cluster {
namespace {

std::string text_from(std::string_view encoded) {
  const auto bytes = from_base64(encoded);
  if (!bytes) return "(none)";
  std::string text;
  for (const std::byte one : *bytes)
    text += static_cast<char>(one);
  return text;
}

// RFC 4648, section 10.
TEST(Base64, IsReadAsInTheRfc) {
  EXPECT_EQ(text_from(""), "");
  EXPECT_EQ(text_from("Zg=="), "f");
  EXPECT_EQ(text_from("Zm8="), "fo");
  EXPECT_EQ(text_from("Zm9v"), "foo");
  EXPECT_EQ(text_from("Zm9vYg=="), "foob");
  EXPECT_EQ(text_from("Zm9vYmE="), "fooba");
  EXPECT_EQ(text_from("Zm9vYmFy"), "foobar");
  EXPECT_EQ(text_from("+/8="), "\xFB\xFF");
}

TEST(Base64, OfAnotherFormIsRefused) {
  for (const char* wrong :
       {"Z", "Zg", "Zg=", "Z===", "====", "Zm9v=", "Zm 9", "Zm9-", "Zh==", "=g=="})
    EXPECT_EQ(text_from(wrong), "(none)") << wrong;
}

}  // namespace
}  // namespace clew::cluster
