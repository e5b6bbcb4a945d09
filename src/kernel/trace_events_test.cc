// SPDX-License-Identifier: Apache-2.0
#include "kernel/trace_events.h"

#include <gtest/gtest.h>

namespace clew::kernel {
namespace {

constexpr std::string_view kFormat = R"(name: order
ID: 4711
format:
 field:unsigned short common_type; offset:0; size:2; signed:0;
 field:int common_pid; offset:4; size:4; signed:1;

 field:const char __user * const who; offset:8; size:8; signed:0;
 field:char name[16]; offset:16; size:16; signed:0;
 field:__data_loc char[] path; offset:32; size:4; signed:0;
 field:__rel_loc u32[] sizes; offset:36; size:4; signed:0;
 field:struct order **next; offset:40; size:8; signed:0;
 field:short rest; offset:48; size:2; signed:1;

print fmt: "field:%d;", REC->rest
)";

TEST(TraceFormats, SayWhereEachFieldIs) {
  const Expected<TraceFormat> format = parse_trace_format(kFormat);
  ASSERT_TRUE(format.has_value()) << format.error().message;
  EXPECT_EQ(format->id, 4711U);
  const std::vector<TraceField> expected = {
      {.name = "who", .type = "char *", .offset_bytes = 8, .size_bytes = 8},
      {.name = "name", .type = "char", .offset_bytes = 16, .size_bytes = 16, .count = 16},
      {.name = "path", .type = "char", .offset_bytes = 32, .size_bytes = 4, .is_elsewhere = true},
      {.name = "sizes",
       .type = "u32",
       .offset_bytes = 36,
       .size_bytes = 4,
       .is_elsewhere = true,
       .is_relative = true},
      {.name = "next", .type = "struct order **", .offset_bytes = 40, .size_bytes = 8},
      {.name = "rest", .type = "short", .offset_bytes = 48, .size_bytes = 2, .is_signed = true}};
  ASSERT_EQ(format->fields.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(format->fields[i] == expected[i]) << format->fields[i].name;
}

TEST(TraceFormats, ThatAreDamagedAreErrors) {
  for (const std::string_view text :
       {"", "ID: x\n", "ID: 1\n\tfield:int a;\toffset:x;\tsize:4;\tsigned:1;\n",
        "ID: 1\n\tfield:\n", "name: a\nID:"}) {
    EXPECT_FALSE(parse_trace_format(text).has_value()) << text;
  }
}

TEST(TraceFormats, NoTextIsTooStrange) {
  std::string text(kFormat);
  for (size_t at = 0; at < text.size(); ++at) {
    (void)parse_trace_format(text.substr(0, at));
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 0x15);
    (void)parse_trace_format(changed);
  }
}

}  // namespace
}  // namespace clew::kernel
