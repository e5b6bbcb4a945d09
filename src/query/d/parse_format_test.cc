// SPDX-License-Identifier: Apache-2.0
#include "query/d/parse_format.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "query/d/print.h"

namespace clew::query::d {
namespace {

std::string parts_of(std::string_view text) {
  const Compiled<Format> format = parse_format(text, 3, {});
  if (!format) return format.error().message;
  std::string result;
  for (const FormatPart& part : format->parts) {
    result += fmt::format("[{}", escape(part.literal));
    if (part.has_conversion)
      result += fmt::format("|{}{}{}{}{}.{}{}{}|{}", part.flags, part.is_aggregation ? "@" : "",
                            part.has_pointer_width ? "?" : "", part.width.value_or(-1),
                            part.has_dynamic_width ? "*" : "", part.precision.value_or(-1),
                            part.has_dynamic_precision ? "*" : "", part.length, part.conversion);
    result += "]";
  }
  return result;
}

TEST(ParseFormat, ConversionsHaveFlagsWidthPrecisionAndLength) {
  EXPECT_EQ(parts_of("a\n"), "[a\\n]");
  EXPECT_EQ(parts_of(""), "[]");
  EXPECT_EQ(parts_of("%d"), "[|-1.-1|d]");
  EXPECT_EQ(parts_of("x%-10.3ldy%%z\n"), "[x|-10.3l|d][y%z\\n]");
  EXPECT_EQ(parts_of("%*.*s"), "[|-1*.-1*|s]");
  EXPECT_EQ(parts_of("%#x%08llx%+d"), "[|#-1.-1|x][|08.-1ll|x][|+-1.-1|d]");
  EXPECT_EQ(parts_of("%@d %-@8d %@-8u %8@d"), "[|@-1.-1|d][ |-@8.-1|d][ |-@8.-1|u][ |@8.-1|d]");
  EXPECT_EQ(parts_of("%?p"), "[|?-1.-1|p]");
  EXPECT_EQ(parts_of("%.0s%."), "format conversion #2 name expected before end of format string");
  EXPECT_EQ(parts_of("%wc%ws%hhd"), "[|-1.-1|wc][|-1.-1|ws][|-1.-1hh|d]");
}

TEST(ParseFormat, EveryConversionOfDIsKnownAndNoOther) {
  for (const char c : std::string_view("aAcCdeEfgGikopsSTuxXY"))
    EXPECT_TRUE(parse_format(fmt::format("%{}", c), 1, {})) << c;
  for (const std::string_view text : {"%q", "%1$d", "%n", "%", "%-", "%lY", "%w", "%9999999d"}) {
    const Compiled<Format> format = parse_format(text, 3, {});
    ASSERT_FALSE(format) << text;
    EXPECT_EQ(format.error().tag, "D_SYNTAX");
    EXPECT_EQ(format.error().line, 3U);
  }
}

}  // namespace
}  // namespace clew::query::d
