// SPDX-License-Identifier: Apache-2.0
#include "output/d/symbols.h"

#include <gtest/gtest.h>

#include "output/d/text.h"

namespace clew::output::d {
namespace {

TEST(DSymbolText, ShowsWhatIsKnown) {
  const target::SymbolPlace module_only = {"libc.so.6", "", 0};
  const target::SymbolPlace inside = {"libc.so.6", "read", 0x14};
  EXPECT_EQ(place_text(inside, 0x1014, PlaceDetail::Offset), "libc.so.6`read+0x14");
  EXPECT_EQ(place_text(inside, 0x1014, PlaceDetail::Symbol), "libc.so.6`read");
  EXPECT_EQ(place_text(inside, 0x1014, PlaceDetail::Module), "libc.so.6");
  EXPECT_EQ(place_text(module_only, 0x1014, PlaceDetail::Offset), "libc.so.6`0x1014");
  EXPECT_EQ(place_text(module_only, 0x1014, PlaceDetail::Symbol), "libc.so.6`0x1014");
  EXPECT_EQ(place_text(module_only, 0x1014, PlaceDetail::Module), "libc.so.6");
  EXPECT_EQ(place_text({}, 0x1014, PlaceDetail::Module), "0x1014");
}

TEST(DText, EscapesAsCDoes) {
  EXPECT_EQ(escaped(std::string_view("\0\t~\x7f", 4)), "\\0\\t~\\x7f");
}

TEST(DText, AnEmptyTableIsNothing) {
  std::string out;
  append_byte_table({}, out);
  EXPECT_EQ(out, "");
}

}  // namespace
}  // namespace clew::output::d
